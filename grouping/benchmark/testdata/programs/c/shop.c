// Fails on demand: shop BUG CALLERS ID NAME crash.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef __SANITIZE_ADDRESS__
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>
static void report(int number) {
  void *calls[64];
  dprintf(2, "Caught signal %d: %s\n", number, strsignal(number));
  backtrace_symbols_fd(calls, backtrace(calls, 64), 2);
  _exit(1);
}
#endif
#define SHOP __attribute__((noinline))

struct item { volatile int price; char name[8]; };
static volatile int zero;
static volatile int prices[4];

SHOP int total(struct item *items) { return items[0].price + 1; }
SHOP int discount(struct item *items) { return items[0].price / 10 + 1; }
SHOP int pick(int *items, int n) { return items[n % 2 + 4]; }
SHOP int last(int *items) { return items[4]; }
SHOP int lookup(int n) { return prices[n % 2 + 4]; }
SHOP int stale(int *items) { free(items); return *(volatile int *)items; }
SHOP int twice(int *items) { free(items); free(items); return 1; }
SHOP int rename_item(const char *name) { char text[4]; strcpy(text, name); return text[zero]; }
SHOP int copy_item(struct item *to, const char *name) { memcpy(to->name, name, strlen(name) + 20); return to->price; }
SHOP int average(int sum) { return sum / zero; }
SHOP int ship(int order) { assert(order == zero); return order; }
SHOP int refund(int order) { if (order != zero) abort(); return order; }

SHOP int checkout(int id, const char *name) { return total((struct item *)(long)zero) + 1; }
SHOP int offer(int id, const char *name) { return discount((struct item *)(long)zero) + 2; }
SHOP int view(int id, const char *name) { int *items = malloc(4 * sizeof(int)), got = pick(items, id); free(items); return got; }
SHOP int tail(int id, const char *name) { int *items = malloc(4 * sizeof(int)), got = last(items); free(items); return got; }
SHOP int quote(int id, const char *name) { return lookup(id) + 3; }
SHOP int reload(int id, const char *name) { return stale(malloc(4 * sizeof(int))) + 4; }
SHOP int clear(int id, const char *name) { return twice(malloc(4 * sizeof(int))) + 5; }
SHOP int relabel(int id, const char *name) { char text[32]; snprintf(text, 32, "item %s", name); return rename_item(text) + 6; }
SHOP int duplicate(int id, const char *name) { struct item *to = malloc(sizeof *to); int got = copy_item(to, name); free(to); return got; }
SHOP int statistics(int id, const char *name) { return average(id) + 7; }
SHOP int send(int id, const char *name) { return ship(id) + 8; }
SHOP int cancel(int id, const char *name) { return refund(id) + 9; }

static const struct { const char *name; int (*run)(int, const char *); } bugs[] = {
  {"total", checkout}, {"discount", offer}, {"pick", view}, {"last", tail}, {"lookup", quote}, {"stale", reload}, {"twice", clear},
  {"rename", relabel}, {"copy", duplicate}, {"average", statistics}, {"ship", send}, {"refund", cancel},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

SHOP int route(const char *bug, int id, const char *name) {
  for (int i = 0; i < BUGS; i++) {
    if (strcmp(bugs[i].name, bug) == 0) return bugs[i].run(id, name) + 1;
  }
  return 0;
}
SHOP int serve(const char *bug, int id, const char *name) { return route(bug, id, name) + 2; }
SHOP int drain(const char *bug, int id, const char *name) { return serve(bug, id, name) + 3; }
SHOP int batch(const char *bug, int id, const char *name) { return drain(bug, id, name) + 4; }
SHOP int nightly(const char *bug, int id, const char *name) { return batch(bug, id, name) + 5; }

int main(int count, char **args) {
  if (count < 6) {
    for (int i = 0; i < BUGS; i++) puts(bugs[i].name);
    return 0;
  }
#ifndef __SANITIZE_ADDRESS__
  signal(SIGSEGV, report), signal(SIGABRT, report), signal(SIGFPE, report), signal(SIGBUS, report);
#endif
  int callers = atoi(args[2]), id = atoi(args[3]);
  printf("%d\n", (callers == 3 ? nightly : callers == 1 ? drain : serve)(args[1], id, args[4]));
  return 0;
}
