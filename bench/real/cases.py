"""The programs that run.py traces, and what is known of each."""
import dataclasses


@dataclasses.dataclass
class Case:
    name: str
    kind: str  # "normal" or "leak"
    # A bash script that starts the program and its load, and writes the number of the
    # process to trace to ./pid when it is ready. $P and $Q are free ports.
    script: str = ""
    files: dict = dataclasses.field(default_factory=dict)
    command: str = ""  # in place of a script: started and traced to its end
    classes: str = ""  # what a leak may be called; with place and advice, patterns
    place: str = ""
    advice: str = ""
    settle: float = 0.5  # seconds from ./pid to the trace
    seconds: int = 0
    # It ends by itself, as that of a bounded cache or of freed memory that is kept: a
    # warning with its class, place and advice is right.
    bounded: bool = False


# quiet runs something again and again.
PRELUDE = """
again() { while :; do "$@"; done > /dev/null 2>&1 & }
trace() { echo $1 > pid.new; mv pid.new pid; }
"""

CASES = []


def normal(name, script="", **more):
    CASES.append(Case(name, "normal", script, **more))


def leak(name, script, classes, place, advice, **more):
    CASES.append(Case(name, "leak", script, classes=classes, place=place, advice=advice, **more))


def py(text, prefix=""):
    """A script that traces a Python program, and the program."""
    return dict(script=f"{prefix} /usr/bin/python3 s.py & trace $!; wait", files={"s.py": text})


# --- redis ---
REDIS = """
redis-server --port $P --appendonly no %s > /dev/null & server=$!
until redis-cli -p $P ping > /dev/null 2>&1; do sleep 0.1; done
"""
normal("redis_steady", REDIS % "--save ''" + """
redis-benchmark -q -p $P -r 30000 -n 300000 -t set -d 100; again redis-benchmark -q -p $P -r 30000 -n 500000 -t set,get -d 100; trace $server; wait""")
normal("redis_bgsave", REDIS % "--save '3 1' --dir $D" + """
redis-benchmark -q -p $P -r 200000 -n 600000 -t set -d 100; again redis-benchmark -q -p $P -r 200000 -n 500000 -t set,get -d 100; trace $server; wait""")
normal("redis_keyfill", REDIS % "--save ''" + """
redis-benchmark -q -p $P -r 200000 -n 30000 -t set; again redis-benchmark -q -p $P -r 200000 -n 500000 -t set; trace $server; wait""")
normal("redis_maxmemory", REDIS % "--save '' --maxmemory 64mb --maxmemory-policy allkeys-lru" + """
again redis-benchmark -q -p $P -r 10000000 -n 500000 -t set -d 500; trace $server; wait""")
normal("redis_lists", REDIS % "--save ''" + """
again redis-benchmark -q -p $P -n 200000 -t lpush,lpop,sadd,spop; sleep 3; trace $server; wait""")

# --- memcached, varnish ---
MEMFILL = """import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
f = s.makefile("rb")
i = 0
while True:
    for _ in range(int(sys.argv[2])):
        s.sendall(b"set k%d 0 0 4000\\r\\n" % i + b"x" * 4000 + b"\\r\\n")
        f.readline()
        i += 1
    time.sleep(0.05)
"""
for n, rate, settle in (("memcached_fill", 40, 0.5), ("memcached_full", 200, 8)):
    normal(n, f"memcached -u nobody -m 64 -p $P & server=$!; sleep 1; /usr/bin/python3 fill.py $P {rate} & trace $server; wait",
           files={"fill.py": MEMFILL}, settle=settle, seconds=30 if n == "memcached_fill" else 0)
normal("varnish_fill", """
mkdir w; for i in $(seq 400); do head -c 200000 /dev/urandom > w/$i; done
/usr/bin/python3 -m http.server -d w $Q > /dev/null 2>&1 &
varnishd -F -n $D/v -a 127.0.0.1:$P -b 127.0.0.1:$Q -s malloc,64m -j none & server=$!
until curl -sf -o /dev/null http://127.0.0.1:$P/1; do sleep 0.2; done; (while :; do for i in $(seq 400); do curl -s -o /dev/null http://127.0.0.1:$P/$i; sleep 0.03; done; done) &
trace $(pgrep -n -P $server); wait""", seconds=30)

# --- web servers ---
NGINX = """mkdir -p www; head -c 20000 /dev/urandom > www/f
cat > n.conf <<END
daemon off; worker_processes 2; pid $D/n.pid; error_log /dev/null; user root;
events {} http { access_log off; server { listen 127.0.0.1:$Q; root $D/www; } }
END
nginx -c $D/n.conf & server=$!
"""
normal("nginx_static", NGINX + "sleep 1; again wrk -c 20 -t 1 -d 60 http://127.0.0.1:$Q/f; trace $server; wait")
normal("haproxy", NGINX + """
printf 'defaults\\n mode http\\n timeout connect 5s\\n timeout client 5s\\n timeout server 5s\\nfrontend f\\n bind 127.0.0.1:%s\\n default_backend b\\nbackend b\\n server s 127.0.0.1:%s\\n' $P $Q > h.cfg
haproxy -f h.cfg & trace $!; sleep 1; again wrk -c 20 -t 1 -d 60 http://127.0.0.1:$P/f; wait""", settle=2)
FLASK = """from flask import Flask, jsonify
app = Flask(__name__)
%s
@app.route("/")
def view():
    %s
    return jsonify(list(range(200)))
"""
PACED = "sleep 2; (while :; do ab -q -n 30 -c 2 http://127.0.0.1:$P/; sleep 0.15; done) > /dev/null 2>&1 & wait"
GUNICORN = "gunicorn -w 2 -b 127.0.0.1:$P app:app > /dev/null 2>&1 & trace $!; " + PACED
UWSGI = "uwsgi --plugin python3 --http-socket 127.0.0.1:$P --wsgi-file app.py --callable app --processes 2 --threads 2 --master > /dev/null 2>&1 & trace $!; " + PACED
normal("gunicorn_flask", GUNICORN, files={"app.py": FLASK % ("", "pass")}, settle=5)
normal("uwsgi_flask", UWSGI, files={"app.py": FLASK % ("", "pass")}, settle=5)
leak("gunicorn_leak", GUNICORN, "heap-leak|python-objects", r"app\.py|view", "free|tracemalloc|memray", settle=4,
     files={"app.py": FLASK % ("kept = []", "kept.append([str(i) for i in range(400)])")})
leak("uwsgi_leak", UWSGI, "heap-leak|python-objects", r"app\.py|view", "free|tracemalloc|memray", settle=4,
     files={"app.py": FLASK % ("kept = []", "kept.append([str(i) for i in range(400)])")})
normal("celery_worker", REDIS % "--save ''" + """
sed -i "s/PORT/$P/" tasks.py; celery -A tasks worker -c 2 > /dev/null 2>&1 & trace $!; sleep 3
(while :; do /usr/bin/python3 -c 'import tasks
for i in range(300): tasks.add.delay(i, i)'; sleep 0.2; done) & wait""", settle=6,
       files={"tasks.py": "from celery import Celery\napp = Celery('tasks', broker='redis://127.0.0.1:PORT/0')\n@app.task(ignore_result=True)\ndef add(x, y):\n    return sum(range(x * 100))\n"})

# --- databases ---
PG = """mkdir pg; chown postgres pg; pgsu() { su postgres -s /bin/bash -c "PATH=$PATH; D=$D; $*"; }
pgsu initdb -D $D/pg -A trust > /dev/null
su postgres -s /bin/bash -c "exec env D=$D $(command -v postgres) -D $D/pg -p $P -k $D/pg -c listen_addresses= -c fsync=off -c shared_buffers=64MB" > /dev/null 2>&1 &
until psql -U postgres -h $D/pg -p $P -c 'select 1' > /dev/null 2>&1; do sleep 0.2; done
server=$(head -1 pg/postmaster.pid)
sql() { psql -q -U postgres -h $D/pg -p $P "$@"; }
bench() { pgbench -U postgres -h $D/pg -p $P "$@"; }
"""
normal("pg_pgbench", PG + "bench -i -s 5 postgres > /dev/null 2>&1; again bench -c 3 -T 300 postgres; sleep 4; trace $server; wait")
normal("pg_churn", PG + "bench -i -s 2 postgres > /dev/null 2>&1; again bench -C -c 3 -T 300 postgres; sleep 4; trace $server; wait")
normal("pg_select", PG + "bench -i -s 5 postgres > /dev/null 2>&1; again bench -S -c 2 -T 300 postgres; sleep 4; trace $server; wait")
normal("pg_vacuum", PG + "bench -i -s 5 postgres > /dev/null 2>&1; (while :; do sql -c 'vacuum full analyze'; done) & sleep 3; trace $server; wait")
RELCACHE = """
for i in $(seq 6000); do echo "create table t$i (a int primary key, b text);"; done | sql -o /dev/null
for i in $(seq 6000); do echo "select count(*), max(b) from t$i where a = 3; select pg_sleep(0.004);"; done > many.sql
(sleep 2; sql -o /dev/null -f many.sql) & sleep 3
"""
leak("pg_relcache", PG + RELCACHE + "trace $(pgrep -f '^postgres: postgres postgres' | head -1); wait", "heap-leak|mmap-leak", "Relation|palloc|RelationBuild|Catalog|Alloc|cache", "free|profiler",
     settle=0)
leak("pg_relcache_postmaster", PG + RELCACHE.replace("(sleep 2;", "(sleep 1;") + "trace $server; wait", "heap-leak|mmap-leak", "Relation|palloc|Catalog|Alloc|cache", "free|profiler", settle=0)
MARIA = """mkdir m; mariadb-install-db --datadir=$D/m --user=root --auth-root-authentication-method=normal > /dev/null 2>&1
env %s mariadbd --no-defaults --datadir=$D/m --user=root --socket=$D/m.sock --port=$P --innodb-buffer-pool-size=64M %s > /dev/null 2>&1 & server=$!
until mariadb-admin --no-defaults --socket=$D/m.sock ping > /dev/null 2>&1; do sleep 0.3; done
"""
SLAP = "again mariadb-slap --no-defaults --socket=$D/m.sock -uroot --auto-generate-sql --auto-generate-sql-load-type=mixed --concurrency=4 --number-of-queries=20000; sleep 3; "
normal("maria_slap", MARIA % ("A=1", "") + SLAP + "trace $server; wait")
normal("maria_tcmalloc", MARIA % ("LD_PRELOAD=libtcmalloc_minimal.so.4", "") + SLAP + "trace $server; wait")
normal("maria_sorts", MARIA % ("A=1", "") + """
mariadb --no-defaults --socket=$D/m.sock -uroot -e "create database d; use d; create table t as select seq a, md5(seq) b from seq_1_to_200000"
(while :; do mariadb --no-defaults --socket=$D/m.sock -uroot d -e "select b, count(*) from t group by b order by 2, 1 limit 3; select count(*) from t x join t y on x.b = y.b" > /dev/null; done) &
sleep 4; trace $server; wait""")
leak("maria_prepared", MARIA % ("A=1", "--max-prepared-stmt-count=1000000") + """
mariadb --no-defaults --socket=$D/m.sock -uroot -e "create database d; use d; create table t (a int, b int, c int)"
(for i in $(seq 200000); do echo "prepare s$i from 'select a, b, c, $i from t x where x.a in (select b from t) and x.c between ? and ?';"; [ $((i % 30)) -ne 0 ] || echo "select sleep(0.02);"; done) | mariadb --no-defaults --socket=$D/m.sock -uroot d > /dev/null &
sleep 2; trace $server; wait""", "heap-leak", "alloc_root|my_malloc|THD|Prepared", "free")

# --- Node ---
def node(text, flags=""):
    return dict(script=f"/usr/bin/env node {flags} s.js > /dev/null & trace $!; sleep 1; [ ! -e load ] || . ./load; wait", files={"s.js": text})

normal("node_http", settle=4, **(lambda d: dict(d, files=dict(d["files"], load="again wrk -c 20 -t 1 -d 60 http://127.0.0.1:$P/")))(node(
    "require('http').createServer((q, r) => r.end(JSON.stringify([...Array(300).keys()].map(i => ({i, s: 'x' + i}))))).listen(process.env.P)")))
normal("node_batch", settle=3, **node("setInterval(() => { let a = []; for (let i = 0; i < 40000; i++) a.push({i, s: 'n' + i}); JSON.parse(JSON.stringify(a)) }, 300)"))
normal("node_cache", **node("let m = new Map(), i = 0; setInterval(() => { for (let k = 0; k < 600; k++) { m.set(i++, Array(20).fill(i)); if (m.size > 60000) m.delete(m.keys().next().value) } }, 20)"))
leak("node_buffer", classes="heap-leak|mmap-leak", place="node::|Buffer|s.js", advice="free|unmap|profiler", **node(
    "let k = []; setInterval(() => { for (let i = 0; i < 20; i++) k.push(Buffer.alloc(20000, 1)) }, 50)"))
leak("node_jsheap", classes="heap-leak|mmap-leak", place="v8::", advice="free|unmap|profiler", seconds=24, **node(
    "let m = new Map(), i = 0; setInterval(() => { for (let k = 0; k < 1500; k++) m.set(i++, Array(30).fill(i)) }, 20)"))
leak("node_zlib", classes="arena-retention|heap-leak", place="[Zz]lib|deflate|arena|uv_|node::|malloc keeps", advice="MALLOC_ARENA_MAX|malloc_trim|free", **node(
    "const z = require('zlib'); const b = Buffer.from(JSON.stringify([...Array(120).keys()])); setInterval(() => { for (let i = 0; i < 900; i++) z.deflate(b, () => {}) }, 40)"), bounded=True)

# --- Java ---
def java(text, flags="-Xmx200m"):
    return dict(script=f"javac S.java && exec 3>&1; java {flags} S > /dev/null & trace $!; wait", files={"S.java": text})

BODY = "import java.util.*; import java.util.concurrent.*; import java.nio.*; import java.util.zip.*; public class S { %s public static void main(String[] a) throws Exception { %s } }"
normal("java_batch", settle=6, **java(BODY % ("", "while (true) { List<String> l = new ArrayList<>(); for (int i = 0; i < 200000; i++) l.add(\"n\" + i); Collections.sort(l); Thread.sleep(100); }")))
normal("java_warm", settle=3, seconds=24, **java(BODY % ("", "Map<Integer, byte[]> m = new LinkedHashMap<>(); Random r = new Random(); while (true) { for (int i = 0; i < 4000; i++) m.put(r.nextInt(40000), new byte[2000]); Thread.sleep(100); }"), "-Xms32m -Xmx300m"))
normal("java_cache", settle=3, **java(BODY % ("", "Map<Integer, byte[]> m = new LinkedHashMap<>() { protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> e) { return size() > 20000; } }; int i = 0; while (true) { for (int k = 0; k < 500; k++) m.put(i++, new byte[1000]); Thread.sleep(10); }")))
leak("java_direct", classes="heap-leak|mmap-leak", place="Unsafe_AllocateMemory|os::malloc|AllocateMemory", advice="free|unmap|profiler", settle=3, **java(
    BODY % ("", "List<ByteBuffer> k = new ArrayList<>(); while (true) { for (int i = 0; i < 10; i++) k.add(ByteBuffer.allocateDirect(30000)); Thread.sleep(30); }"), "-Xmx200m -XX:MaxDirectMemorySize=4g"))
leak("java_executors", classes="thread-stacks", place="pthread_create|os::create_thread|JVM_StartThread", advice="thread", settle=3, **java(
    BODY % ("", "List<ExecutorService> k = new ArrayList<>(); while (true) { ExecutorService e = Executors.newFixedThreadPool(1); e.submit(() -> 1).get(); k.add(e); Thread.sleep(20); }")))
leak("java_deflater", classes="heap-leak|mmap-leak", place="deflateInit|Deflater", advice="free|unmap|profiler", settle=3, **java(
    BODY % ("", "List<Deflater> k = new ArrayList<>(); while (true) { for (int i = 0; i < 3; i++) { Deflater d = new Deflater(); d.setInput(new byte[100]); d.deflate(new byte[200]); k.add(d); } Thread.sleep(50); }")))

# --- Go ---
def golang(text):
    return dict(script="export GOFLAGS=-mod=mod GO111MODULE=off; go build -o s s.go && { ./s > /dev/null & trace $!; wait; }", files={"s.go": "package main\n" + text})

normal("go_cache", settle=1, seconds=24, **golang("import \"time\"\nfunc main() { m := map[int][]byte{}; i := 0; for { for k := 0; k < 400; k++ { m[i%30000] = make([]byte, 1500); i++ }; time.Sleep(50 * time.Millisecond) } }"))
normal("go_batch", settle=2, **golang("import (\"time\"; \"sort\"; \"strconv\")\nfunc main() { for { var s []string; for i := 0; i < 100000; i++ { s = append(s, strconv.Itoa(i*7919%100003)) }; sort.Strings(s); time.Sleep(100 * time.Millisecond) } }"))
normal("go_build", "cd $HERE/../..; (while :; do go vet ./units ./finding ./stack; go build -a -o /dev/null ./units; done) > /dev/null 2>&1 & cd $D; trace $!; wait")
leak("go_goroutines", classes="mmap-leak|heap-leak|thread-stacks", place="main\\.|runtime", advice="unmap|free|goroutine", **golang(
    "import \"time\"\nfunc main() { c := make(chan int); for { for i := 0; i < 100; i++ { go func() { var b [3000]byte; b[5] = 1; <-c; _ = b }() }; time.Sleep(10 * time.Millisecond) } }"))

# --- Ruby, PHP, Perl ---
normal("ruby_batch", "ruby -e 'loop { a = (1..60000).map { |i| \"n#{i}\" }; a.sort!; sleep 0.05 }' & trace $!; wait", settle=4)
normal("ruby_strings", "ruby -e 'h = {}; i = 0; loop { i += 1; h[i % 5000] = \"x\" * (i % 900); sleep 0.0005 }' & trace $!; wait", settle=4)
leak("ruby_leak", "ruby -e 'K = []; loop { 200.times { |i| K << (\"x%d\" % i) * 120 }; sleep 0.02 }' & trace $!; wait", "heap-leak", "rb_", "free", settle=2)
leak("ruby_threads", """ruby -e '12.times.map { Thread.new { loop { a = Array.new(5000) { "x" * (100 + rand(3000)) }; sleep 0.2 + rand * 0.1; a = nil; sleep 0.2 } } }.each(&:join)' & trace $!; wait""",
     "arena-retention|heap-leak", "rb_|ruby|arena|malloc keeps", "MALLOC_ARENA_MAX", seconds=24, settle=0, bounded=True)
normal("php_cli", "php -d memory_limit=-1 -r 'while (1) { $a = []; for ($i = 0; $i < 50000; $i++) $a[] = \"n$i\"; sort($a); usleep(50000); }' & trace $!; wait", settle=3)
normal("php_server", "echo '<?php $a = range(1, 5000); shuffle($a); sort($a); echo json_encode($a);' > i.php; php -S 127.0.0.1:$P i.php > /dev/null 2>&1 & trace $!; sleep 1; again ab -q -n 100000 -c 3 http://127.0.0.1:$P/; wait", settle=4)
leak("php_leak", "php -d memory_limit=-1 -r '$k = []; while (1) { for ($i = 0; $i < 300; $i++) $k[] = str_repeat(\"ab$i\", 60); usleep(10000); }' & trace $!; wait", "mmap-leak|heap-leak", "zend|php|execute", "unmap|free")
normal("perl_log", "perl -e 'while (1) { my %h; for my $i (1..20000) { $h{\"w\" . ($i * 7 % 997)}++ } my $s = join \",\", sort keys %h; select undef, undef, undef, 0.02 }' & trace $!; wait", settle=3)
leak("perl_cycle", "perl -e 'while (1) { for (1..300) { my $a = {n => $_, d => \"x\" x 100}; my $b = {up => $a}; $a->{down} = $b } select undef, undef, undef, 0.01 }' & trace $!; wait", "heap-leak", "Perl_", "free")

# --- Python ---
normal("numpy_loop", settle=3, **py("import numpy as np, time, random\nwhile True:\n    n = random.randrange(100, 1400)\n    a = np.random.rand(n, n)\n    (a @ a.T).sum()\n    time.sleep(0.02)\n"))
normal("pandas_batch", settle=5, **py("""import pandas as pd, io, time
text = "a,b,c\\n" + "\\n".join(f"{i % 97},{i},{i * 0.5}" for i in range(60000))
while True:
    pd.read_csv(io.StringIO(text)).groupby("a").mean()
    time.sleep(0.05)
"""))
normal("pandas_cachefill", seconds=24, settle=2, **py("""import pandas as pd, time, random
cache = {}
def lookup(k):
    if k not in cache:
        cache[k] = [(k, i, str(i)) for i in range(900)]
    return cache[k]
k = 0
while True:
    lookup(k % 600)
    k += 1
    time.sleep(0.02)
"""))
normal("cmd_pandas_job", command="/usr/bin/python3 s.py", files={"s.py": """import pandas as pd, numpy as np, time
parts = []
for i in range(20):
    parts.append(pd.DataFrame({"a": np.random.rand(150000), "b": [str(j % 1000) for j in range(150000)], "c": np.arange(150000)}))
    all = pd.concat(parts)
    time.sleep(0.2)
print(all.groupby("b").mean().shape)
"""}, seconds=60)
normal("cmd_json_job", command="/usr/bin/python3 s.py", files={"s.py": """import json, time
rows = []
for i in range(40):
    rows += json.loads(json.dumps([{"i": j, "s": str(j)} for j in range(9000)]))
    time.sleep(0.15)
print(len(rows))
"""}, seconds=60)
normal("cmd_sort", command="bash -c 'seq 4000000 | sort -R | sort -n | tail -1'", seconds=60)
normal("cmd_gcc", command="bash -c \"for i in $(seq 800); do echo 'int f'$i'(int a){int s=0;for(int i=0;i<a;i++)s+=i*'$i';return s;}'; done > a.c; gcc -O2 -c a.c\"", seconds=60)
normal("numpy_memmap", settle=1, **py("""import numpy as np, time
a = np.memmap("f", dtype="u1", mode="w+", shape=(300 << 20,))
a[::4096] = 1
a.flush()
del a
a = np.memmap("f", dtype="u1", mode="r")
open("ready", "w").close()
for i in range(0, len(a), 1 << 20):
    a[i:i + (1 << 20)].sum()
    time.sleep(0.05)
time.sleep(60)
"""))
normal("sqlite_batch", settle=3, **py("""import sqlite3, time
db = sqlite3.connect("d.db")
db.execute("create table t (a, b)")
i = 0
while True:
    db.executemany("insert into t values (?, ?)", [(j, str(j)) for j in range(3000)])
    db.commit()
    db.execute("delete from t where a < 2500")
    db.execute("select b, count(*) from t group by b").fetchall()
    time.sleep(0.02)
"""))
normal("py_lru", seconds=24, settle=1, **py("""import collections, os, time
cache = collections.OrderedDict()
i = 0
while True:
    for _ in range(12):
        cache[i] = os.urandom(12000)
        i += 1
        if len(cache) > 5000:
            cache.popitem(last=False)
    time.sleep(0.03)
"""))
normal("py_asyncio", settle=3, **py("""import asyncio, json
async def serve(r, w):
    while line := await r.readline():
        w.write(json.dumps([line.decode()] * 50).encode() + b"\\n")
        await w.drain()
async def client(port):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    while True:
        w.write(b"hello\\n")
        await r.readline()
async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", 0)
    await asyncio.gather(*[client(s.sockets[0].getsockname()[1]) for _ in range(8)])
asyncio.run(main())
"""))
normal("py_pool", settle=3, **py("""import concurrent.futures, time, zlib, os
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    while True:
        list(pool.map(lambda n: zlib.compress(os.urandom(n)), range(1000, 200000, 5000)))
        time.sleep(0.01)
"""))
normal("py_processes", settle=3, **py("""import multiprocessing, time
def work(n):
    return sum(i * i for i in range(n))
if __name__ == "__main__":
    while True:
        with multiprocessing.Pool(2) as p:
            p.map(work, range(1000, 30000, 500))
"""))
normal("batch_midload", seconds=24, settle=1, **py("""import time
def batch():
    rows = []
    for k in range(110):
        rows += ["row %d of %d" % (i, k) for i in range(1500)]
        time.sleep(0.1)
    return rows
time.sleep(14)
while True:
    batch()
"""))
normal("batch_sawtooth", seconds=24, settle=2, **py("""import time
while True:
    rows = []
    for k in range(60):
        rows.append([bytes(5000) for _ in range(200)])
        time.sleep(0.1)
    del rows
    time.sleep(2)
"""))
leak("py_objects", classes="python-objects", place=r"on_event", advice="tracemalloc|memray", **py("""import time
kept = []
def on_event(i):
    kept.append({"id": i, "name": str(i)})
i = 0
while True:
    for _ in range(300):
        on_event(i)
        i += 1
    time.sleep(0.02)
"""))
BUFFER = """import sys, time, numpy
time.sleep(6)
def reserve(): return numpy.empty(512 << 20, dtype=numpy.uint8)
kept = []
def work(n):
    for _ in range(n): kept.append(bytes(5000))
buffer = reserve()
for i in range(1 << 11):
    buffer[i << 18:(i + 1) << 18] = 1
    work(%d)
    time.sleep(0.03)
while True: time.sleep(1)
"""
normal("py_buffer", **py(BUFFER % 0))
leak("py_buffer_leak", classes="heap-leak", place=r"work", advice="free|heaptrack|memray", **py(BUFFER % 12))
leak("py_heap", classes="heap-leak", place=r"login|__init__", advice="free|heaptrack|memray", **py("""import time
class Session:
    def __init__(self, n):
        self.buffer = bytes(n)
kept = []
def login(i):
    kept.append(Session(4000 + i % 1500))
i = 0
while True:
    for _ in range(20):
        login(i)
        i += 1
    time.sleep(0.02)
"""))
leak("py_mmap", classes="mmap-leak|shm", place="reserve", advice="unmap", **py("""import mmap, time
kept = []
def reserve():
    m = mmap.mmap(-1, 300 << 10)
    m.write(b"x" * (300 << 10))
    kept.append(m)
while True:
    reserve()
    time.sleep(0.05)
"""))
leak("py_shm", classes="shm|memfd", place="publish", advice="unmap|unlink|close", **py("""import time
from multiprocessing.shared_memory import SharedMemory
kept = []
def publish():
    s = SharedMemory(create=True, size=300 << 10)
    s.buf[:] = b"x" * (300 << 10)
    kept.append(s)
try:
    for _ in range(900):
        publish()
        time.sleep(0.05)
finally:
    for s in kept:
        s.unlink()
"""))
leak("py_memfd", classes="memfd", place="frame", advice="close", **py("""import os, time
kept = []
def frame():
    fd = os.memfd_create("frame")
    os.write(fd, b"x" * (300 << 10))
    kept.append(fd)
while True:
    frame()
    time.sleep(0.05)
"""))
leak("py_threads", classes="thread-stacks", place="start_worker", advice="thread", **py("""import threading, time
def start_worker():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
while True:
    start_worker()
    time.sleep(0.05)
"""))
leak("py_bytearray", classes="mremap|regrown", place="append", advice="limit|join", **py("""import time
log = bytearray()
def append():
    log.extend(b"x" * 60000)
while True:
    append()
    time.sleep(0.02)
"""))
leak("py_bytes", classes="regrown|mremap", place="grow", advice="join|limit", **py("""import time
class Log:
    text = b""
def grow(log):
    log.text = log.text + b"y" * 150000
log = Log()
while True:
    grow(log)
    time.sleep(0.02)
"""))
leak("py_sockets", classes="kernel", place=".", advice="[Cc]lose", **py("""import socket, time
kept = []
def connect():
    a, b = socket.socketpair()
    a.setblocking(False)
    try:
        while True:
            a.send(b"x" * 30000)
    except BlockingIOError:
        pass
    kept.append((a, b))
while True:
    connect()
    time.sleep(0.02)
"""))
leak("py_dlopen", classes="file-mapping|mmap-leak", place="job", advice="load|dlopen|unmap|once", **py("""import ctypes, shutil, time
n = 0
def job():
    global n
    n += 1
    shutil.copy("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", f"./lib{n}.so")
    return ctypes.CDLL(f"./lib{n}.so")
while True:
    job()
    time.sleep(0.1)
"""))
leak("pandas_threads", classes="arena-retention|heap-leak", place="read_csv|load|arena|malloc keeps|parser|numpy", advice="MALLOC_ARENA_MAX", seconds=24, settle=0.2, bounded=True, **py("""import pandas as pd, threading, time
row = ",".join(str(i * 1.5) for i in range(300))
with open("f.csv", "w") as f:
    f.write((row + "\\n") * 1500)
kept = []
def load():
    frames = []
    for _ in range(6):
        d = pd.read_csv("f.csv", header=None)
        frames.append([d[c].to_numpy().copy() for c in d])
    kept.extend(a for f in frames for a in f[::40])
for _ in range(8):
    threading.Thread(target=load).start()
while True:
    time.sleep(1)
"""))

# --- PyTorch on the CPU ---
normal("torch_train", settle=6, **py("""import torch, time
m = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 30 * 30, 10))
o = torch.optim.Adam(m.parameters())
while True:
    loss = m(torch.rand(8, 3, 32, 32)).sum()
    o.zero_grad(); loss.backward(); o.step()
    time.sleep(0.01)
"""))
normal("torch_dataloader", settle=6, **py("""import torch, time
class D(torch.utils.data.Dataset):
    def __len__(self): return 2000
    def __getitem__(self, i): return torch.rand(3, 32, 32)
while True:
    for b in torch.utils.data.DataLoader(D(), batch_size=32, num_workers=2):
        b.sum()
        time.sleep(0.01)
"""))
normal("cmd_torch_start", command="/usr/bin/python3 s.py", seconds=60, files={"s.py": """import torch, time
m = torch.nn.Linear(3000, 3000)
o = torch.optim.Adam(m.parameters())
for i in range(60):
    o.zero_grad(); m(torch.rand(8, 3000)).sum().backward(); o.step()
    time.sleep(0.1)
"""})
# Debian's PyTorch has no names for the nodes of the graph: it is a heap there.
leak("torch_graph", classes="autograd-graph", place="step|s.py", advice="detach", settle=5, **py("""import torch, time
w = torch.rand(400, requires_grad=True)
total = 0
def step():
    global total
    total = total + (w * torch.rand(400)).sum()
while True:
    for _ in range(20):
        step()
    time.sleep(0.02)
"""))
leak("torch_varshape", classes="heap-leak|arena-retention|mmap-leak|primitive-cache", place="conv|dnnl|Conv", advice="shape|ONEDNN|LRU|DNNL", settle=5, seconds=24, bounded=True, **py("""import torch, time, random
m = torch.nn.Conv2d(3, 32, 3)
def serve():
    with torch.no_grad():
        m(torch.rand(1, 3, random.randrange(40, 300), random.randrange(40, 300)))
while True:
    serve()
    time.sleep(0.01)
"""))
leak("dataloader_kept", classes="shm|memfd", place="s.py|collect|DataLoader|rebuild|_worker|fetch", advice="drop|close|copy|clone", settle=5, **py("""import torch, time
class D(torch.utils.data.Dataset):
    def __len__(self): return 100000
    def __getitem__(self, i): return torch.rand(64, 64)
kept = []
def collect(b):
    kept.append(b)
for b in torch.utils.data.DataLoader(D(), batch_size=8, num_workers=2):
    collect(b)
    time.sleep(0.03)
"""))
leak("dataloader_cow", classes="copy-on-write", place=".", advice="numpy|Arrow|freeze", settle=15, **py("""import torch, time
class D(torch.utils.data.Dataset):
    def __init__(self): self.rows = [{"i": i, "s": "n%d" % i} for i in range(400000)]
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]["i"]
d = D()
for b in torch.utils.data.DataLoader(d, batch_size=200, num_workers=2):
    time.sleep(0.02)
time.sleep(60)
"""))

# --- redis, which grows ---
# A server that keeps what it receives and one whose cache fills look alike at first: it
# is traced when it is older than the two minutes that a program may take to load.
leak("redis_slow_subscriber", REDIS % "--save '' --client-output-buffer-limit 'pubsub 0 0 0'" + """
(exec 4<>/dev/tcp/127.0.0.1/$P; printf 'SUBSCRIBE c\\r\\n' >&4; sleep 1000) &
(while :; do redis-benchmark -q -p $P -n 2000 -P 4 PUBLISH c $(printf 'x%.0s' $(seq 500)); sleep 0.2; done) > /dev/null 2>&1 & sleep 1; trace $server; wait""",
     "allocator-retention|heap-leak", "Reply|pubsub", "free|allocator|malloc_stats", settle=125)

# --- shells, compilers, stress-ng ---
normal("sort_loop", "seq 400000 | sort -R > f; again sort -n f; trace $$; wait")
normal("xz_loop", "head -c 3000000 /dev/urandom > f; again xz -k -c f; trace $$; wait")
normal("gcc_loop", "for i in $(seq 200); do echo \"int f$i(int a){int s=0;for(int i=0;i<a;i++)s+=i*$i;return s;}\"; done > a.c; again gcc -O2 -c a.c; trace $$; wait")
normal("convert_loop", "convert -size 900x900 plasma: p.png; again convert p.png -resize 50% -blur 0x2 q.png; trace $$; wait")
normal("ripgrep_loop", "again rg -c main /usr/lib/python3; trace $$; wait")
for s in ("--fork 1 --pthread 1", "--malloc 1 --malloc-bytes 256k --malloc-max 400", "--mmap 1 --mmap-bytes 64m", "--mremap 1 --mremap-bytes 32m --brk 1", "--shm 1 --shm-sysv 1 --memfd 1", "--vm 1 --vm-bytes 64m"):
    n = "stress_" + s.split()[0].strip("-")
    normal(n, f"stress-ng {s} -t 300 > /dev/null 2>&1 & trace $!; wait", settle=2)
