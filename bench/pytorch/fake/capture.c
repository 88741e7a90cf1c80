/* Streams, events, captures and graphs of libcudart.  A capture makes a graph: a node
 * for each launch and copy on a stream that takes part, which depends on the nodes
 * before it and on those of the events that its stream waits for.  A call that may not
 * be made during capture ends it, and the end of it fails. */
#include "fk.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
typedef int cudaError;
enum {
  E_OK = 0, E_VALUE = 1, E_HANDLE = 400, E_NOTREADY = 600,
  E_UNSUPPORTED = 900, E_INVALIDATED = 901, E_ILLEGAL = 401
};
enum { IDLE, CAPTURING, INVALID };
cudaError fk_fail(cudaError);

struct node {
  struct node *next, **deps;
  size_t n_deps;
};
struct graph {
  struct node *first;
};
struct capture {
  uint64_t id;
  struct graph *graph;
  struct fk_stream *origin;
  int status;
};

static struct capture *captures[64]; /* that are under way */
static int n_captures;
static uint64_t next_capture;
static struct fk_stream *streams[4096];
static int n_streams;
static struct fk_stream default_stream[FK_MAX_DEVICES];

static struct fk_stream *stream(void *s) {
  /* NULL, cudaStreamLegacy (1) and cudaStreamPerThread (2) */
  if ((uintptr_t)s <= 2) return &default_stream[fk_device()];
  return s;
}
static struct capture *capture_of(uint64_t id) {
  for (int i = 0; i < n_captures; i++)
    if (captures[i]->id == id) return captures[i];
  return NULL;
}
/* A call that no capture allows. */
static cudaError forbidden(struct capture *c) {
  c->status = INVALID;
  return fk_fail(E_UNSUPPORTED);
}
static __thread int capture_mode; /* 0 global, 1 of this thread, 2 relaxed */
cudaError fk_unsafe_call(void) {
  return n_captures && capture_mode != 2 ? forbidden(captures[0]) : E_OK;
}

static void set_deps(struct fk_deps *d, void **nodes, size_t n) {
  void **list = n ? memcpy(malloc(n * sizeof *list), nodes, n * sizeof *list) : NULL;
  free(d->list);
  d->list = list;
  d->n = n;
}
static void add_deps(struct fk_deps *d, void **nodes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    size_t j = 0;
    while (j < d->n && d->list[j] != nodes[i]) j++;
    if (j < d->n) continue;
    d->list = realloc(d->list, (d->n + 1) * sizeof *d->list);
    d->list[d->n++] = nodes[i];
  }
}
static struct node *add_node(struct graph *g, void **deps, size_t n) {
  struct node *x = calloc(1, sizeof *x);
  if (n) x->deps = memcpy(malloc(n * sizeof *deps), deps, n * sizeof *deps);
  x->n_deps = n;
  x->next = g->first;
  return g->first = x;
}
static void free_graph(struct graph *g) {
  for (struct node *x = g->first, *next; x; x = next) {
    next = x->next;
    free(x->deps);
    free(x);
  }
  free(g);
}

void fk_work_on(void *p) {
  struct fk_stream *s = stream(p);
  struct capture *c = s->capture ? capture_of(s->capture) : NULL;
  if (!c) {
    fk_work();
    return;
  }
  void *x = add_node(c->graph, s->deps.list, s->deps.n);
  set_deps(&s->deps, &x, 1);
}

EXPORT cudaError cudaStreamCreateWithPriority(void **out, unsigned f, int pri) {
  struct fk_stream *s = calloc(1, sizeof *s);
  s->device = fk_device();
  s->flags = f;
  s->priority = pri;
  if (n_streams < 4096) streams[n_streams++] = s;
  *out = s;
  return E_OK;
}
EXPORT cudaError cudaStreamCreateWithFlags(void **out, unsigned f) {
  return cudaStreamCreateWithPriority(out, f, 0);
}
EXPORT cudaError cudaStreamCreate(void **out) {
  return cudaStreamCreateWithPriority(out, 0, 0);
}
EXPORT cudaError cudaStreamDestroy(void *p) {
  for (int i = 0; i < n_streams; i++)
    if (streams[i] == p) {
      streams[i] = streams[--n_streams];
      free(p);
      return E_OK;
    }
  return fk_fail(E_HANDLE);
}
EXPORT cudaError cudaStreamGetPriority(void *p, int *pri) {
  *pri = stream(p)->priority;
  return E_OK;
}
EXPORT cudaError cudaStreamGetFlags(void *p, unsigned *f) {
  *f = stream(p)->flags;
  return E_OK;
}
EXPORT cudaError cudaStreamGetDevice(void *p, int *d) {
  *d = stream(p)->device;
  return E_OK;
}
EXPORT cudaError cudaStreamQuery(void *p) {
  struct capture *c = capture_of(stream(p)->capture);
  return c ? forbidden(c) : E_OK;
}
EXPORT cudaError cudaStreamSynchronize(void *p) {
  struct capture *c = capture_of(stream(p)->capture);
  if (c) return forbidden(c);
  fk_sync();
  return E_OK;
}
EXPORT cudaError cudaDeviceSynchronize(void) {
  if (fk_unsafe_call()) return E_UNSUPPORTED;
  fk_sync();
  return E_OK;
}

EXPORT cudaError cudaEventCreateWithFlags(void **out, unsigned f) {
  (void)f;
  *out = calloc(1, sizeof(struct fk_event));
  return E_OK;
}
EXPORT cudaError cudaEventCreate(void **out) {
  return cudaEventCreateWithFlags(out, 0);
}
EXPORT cudaError cudaEventDestroy(void *p) {
  struct fk_event *e = p;
  if (e) free(e->deps.list);
  free(e);
  return E_OK;
}
EXPORT cudaError cudaEventRecord(void *p, void *st) {
  struct fk_event *e = p;
  struct fk_stream *s = stream(st);
  e->recorded = 1;
  e->tick = fk_tick();
  e->done = fk_done();
  e->capture = s->capture;
  set_deps(&e->deps, s->deps.list, s->capture ? s->deps.n : 0);
  return E_OK;
}
EXPORT cudaError cudaEventRecordWithFlags(void *p, void *s, unsigned f) {
  (void)f;
  return cudaEventRecord(p, s);
}
EXPORT cudaError cudaEventQuery(void *p) {
  struct fk_event *e = p;
  struct capture *c = e ? capture_of(e->capture) : NULL;
  if (c) return forbidden(c);
  return fk_event_ready(e) ? E_OK : E_NOTREADY;
}
EXPORT cudaError cudaEventSynchronize(void *p) {
  struct fk_event *e = p;
  struct capture *c = e ? capture_of(e->capture) : NULL;
  if (c) return forbidden(c);
  fk_sync();
  return E_OK;
}
EXPORT cudaError cudaEventElapsedTime(float *ms, void *a, void *b) {
  struct fk_event *x = a, *y = b;
  *ms = y->tick > x->tick ? (float)(y->tick - x->tick) * 0.01f : 0.01f;
  return E_OK;
}
EXPORT cudaError cudaStreamWaitEvent(void *st, void *p, unsigned f) {
  (void)f;
  struct fk_event *e = p;
  struct fk_stream *s = stream(st);
  if (e->capture && capture_of(e->capture)) { /* joins the capture */
    if (s->capture != e->capture) set_deps(&s->deps, NULL, 0);
    s->capture = e->capture;
    add_deps(&s->deps, e->deps.list, e->deps.n);
  }
  return E_OK;
}

EXPORT cudaError cudaStreamBeginCapture(void *p, int mode) {
  struct fk_stream *s = stream(p);
  if (s->capture || n_captures == 64) return fk_fail(E_ILLEGAL);
  struct capture *c = calloc(1, sizeof *c);
  (void)mode;
  c->id = ++next_capture;
  c->graph = calloc(1, sizeof *c->graph);
  c->origin = s;
  c->status = CAPTURING;
  captures[n_captures++] = c;
  s->capture = c->id;
  set_deps(&s->deps, NULL, 0);
  return E_OK;
}
EXPORT cudaError cudaStreamEndCapture(void *p, void **graph) {
  struct fk_stream *s = stream(p);
  struct capture *c = capture_of(s->capture);
  *graph = NULL;
  if (!c || c->origin != s) return fk_fail(E_ILLEGAL);
  for (int i = 0; i < n_streams; i++)
    if (streams[i]->capture == c->id) {
      streams[i]->capture = 0;
      set_deps(&streams[i]->deps, NULL, 0);
    }
  s->capture = 0;
  set_deps(&s->deps, NULL, 0);
  for (int i = 0; i < n_captures; i++)
    if (captures[i] == c) captures[i] = captures[--n_captures];
  int invalid = c->status == INVALID;
  if (invalid)
    free_graph(c->graph);
  else
    *graph = c->graph;
  free(c);
  return invalid ? fk_fail(E_INVALIDATED) : E_OK;
}
EXPORT cudaError cudaStreamIsCapturing(void *p, int *status) {
  struct capture *c = capture_of(stream(p)->capture);
  *status = c ? c->status : IDLE;
  return E_OK;
}
EXPORT cudaError cudaStreamGetCaptureInfo_v3(void *p, int *status, uint64_t *id, void **graph,
                                             void ***deps, const void **edges, size_t *n) {
  struct fk_stream *s = stream(p);
  struct capture *c = capture_of(s->capture);
  *status = c ? c->status : IDLE;
  if (id) *id = c ? c->id : 0;
  if (graph) *graph = c ? c->graph : NULL;
  if (deps) *deps = c ? s->deps.list : NULL;
  if (edges) *edges = NULL;
  if (n) *n = c ? s->deps.n : 0;
  return E_OK;
}
EXPORT cudaError cudaStreamGetCaptureInfo_v2(void *p, int *status, uint64_t *id, void **graph,
                                             void ***deps, size_t *n) {
  return cudaStreamGetCaptureInfo_v3(p, status, id, graph, deps, NULL, n);
}
#if CUDA < 13
EXPORT cudaError cudaStreamGetCaptureInfo(void *p, int *status, uint64_t *id) {
  return cudaStreamGetCaptureInfo_v3(p, status, id, NULL, NULL, NULL, NULL);
}
#else
EXPORT cudaError cudaStreamGetCaptureInfo(void *p, int *status, uint64_t *id, void **graph,
                                          void ***deps, const void **edges, size_t *n) {
  return cudaStreamGetCaptureInfo_v3(p, status, id, graph, deps, edges, n);
}
#endif
static cudaError update(void *p, void **nodes, size_t n, unsigned set) {
  struct fk_stream *s = stream(p);
  if (!s->capture) return fk_fail(E_ILLEGAL);
  if (set)
    set_deps(&s->deps, nodes, n);
  else
    add_deps(&s->deps, nodes, n);
  return E_OK;
}
EXPORT cudaError cudaStreamUpdateCaptureDependencies_v2(void *p, void **nodes, const void *edges,
                                                        size_t n, unsigned set) {
  (void)edges;
  return update(p, nodes, n, set);
}
#if CUDA < 13
EXPORT cudaError cudaStreamUpdateCaptureDependencies(void *p, void **nodes, size_t n,
                                                     unsigned set) {
  return update(p, nodes, n, set);
}
#else
EXPORT cudaError cudaStreamUpdateCaptureDependencies(void *p, void **nodes, const void *edges,
                                                     size_t n, unsigned set) {
  (void)edges;
  return update(p, nodes, n, set);
}
#endif
EXPORT cudaError cudaThreadExchangeStreamCaptureMode(int *mode) {
  int old = capture_mode;
  capture_mode = *mode;
  *mode = old;
  return E_OK;
}

EXPORT cudaError cudaGraphCreate(void **g, unsigned flags) {
  (void)flags;
  *g = calloc(1, sizeof(struct graph));
  return E_OK;
}
EXPORT cudaError cudaGraphAddEmptyNode(void **x, void *g, void **deps, size_t n) {
  *x = add_node(g, deps, n);
  return E_OK;
}
static cudaError dependencies(struct node *x, void **deps, size_t *n) {
  if (deps) {
    for (size_t i = 0; i < *n; i++) deps[i] = i < x->n_deps ? x->deps[i] : NULL;
    if (*n > x->n_deps) *n = x->n_deps;
  } else {
    *n = x->n_deps;
  }
  return E_OK;
}
EXPORT cudaError cudaGraphNodeGetDependencies_v2(void *x, void **deps, void *edges, size_t *n) {
  (void)edges;
  return dependencies(x, deps, n);
}
#if CUDA < 13
EXPORT cudaError cudaGraphNodeGetDependencies(void *x, void **deps, size_t *n) {
  return dependencies(x, deps, n);
}
#else
EXPORT cudaError cudaGraphNodeGetDependencies(void *x, void **deps, void *edges, size_t *n) {
  (void)edges;
  return dependencies(x, deps, n);
}
#endif
EXPORT cudaError cudaGraphGetNodes(void *p, void **nodes, size_t *n) {
  size_t i = 0;
  for (struct node *x = ((struct graph *)p)->first; x; x = x->next, i++)
    if (nodes && i < *n) nodes[i] = x;
  if (!nodes || i < *n) *n = i;
  return E_OK;
}
EXPORT cudaError cudaGraphNodeGetType(void *x, int *type) {
  (void)x;
  *type = 0; /* a kernel */
  return E_OK;
}
EXPORT cudaError cudaGraphInstantiate(void **x, void *g, unsigned long long f) {
  (void)g; (void)f;
  *x = malloc(16);
  return E_OK;
}
EXPORT cudaError cudaGraphInstantiateWithFlags(void **x, void *g, unsigned long long f) {
  return cudaGraphInstantiate(x, g, f);
}
EXPORT cudaError cudaGraphLaunch(void *x, void *s) {
  (void)x;
  fk_work_on(s);
  return E_OK;
}
EXPORT cudaError cudaGraphDestroy(void *g) {
  if (g) free_graph(g);
  return E_OK;
}
EXPORT cudaError cudaGraphExecDestroy(void *g) { free(g); return E_OK; }

EXPORT cudaError cudaLaunchHostFunc(void *s, void (*fn)(void *), void *arg) {
  if (!stream(s)->capture) fn(arg);
  fk_work_on(s);
  return E_OK;
}
