"""A server that initializes UCX, as NIXL and MPI do, and then maps and unmaps buffers."""
import ctypes, mmap, os, sys, time
ucp = ctypes.CDLL("libucp.so.0", mode=ctypes.RTLD_GLOBAL)
a, b, c = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
ucp.ucp_get_version(ctypes.byref(a), ctypes.byref(b), ctypes.byref(c))
config = ctypes.c_void_p()
assert ucp.ucp_config_read(None, None, ctypes.byref(config)) == 0
class Params(ctypes.Structure):
    _fields_ = [("field_mask", ctypes.c_uint64), ("features", ctypes.c_uint64), ("pad", ctypes.c_uint8 * 256)]
p = Params(); p.field_mask = 1; p.features = 3
ctx = ctypes.c_void_p()
r = ucp.ucp_init_version(a, b, ctypes.byref(p), config, ctypes.byref(ctx))
print("ucx", a.value, b.value, c.value, "init", r, os.getpid(), flush=True)
def decode_step():
    for _ in range(200):
        mmap.mmap(-1, 65536).close()
def engine_loop():
    end = time.time() + float(sys.argv[1])
    while time.time() < end:
        decode_step()

engine_loop()
os._exit(0)
