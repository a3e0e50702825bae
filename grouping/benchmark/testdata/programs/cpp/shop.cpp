// Fails on demand: shop BUG CALLERS ID NAME crash.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#ifndef __SANITIZE_ADDRESS__
#include <csignal>
#include <execinfo.h>
#include <unistd.h>
static void report(int number) {
  void *calls[64];
  dprintf(2, "Caught signal %d: %s\n", number, strsignal(number));
  backtrace_symbols_fd(calls, backtrace(calls, 64), 2);
  _exit(1);
}
#endif
#define SHOP __attribute__((noinline))

namespace shop {

static volatile int zero;

struct Item {
  volatile int price = 0;
  std::string name;
};

template <class Price> struct Cart {
  std::vector<Item *> items;
  std::map<std::string, Price> prices;
  SHOP Price total() const {
    Price sum = 0;
    for (auto item : items) sum += item->price;
    return sum;
  }
  SHOP Price discount() const { return items.front()->price / 10 + 1; }
  SHOP Price at(int n) const { return items.at(n)->price + 2; }
  SHOP Price price_of(const std::string &name) const { return prices.at(name) + 3; }
  SHOP Price cheapest() {
    std::sort(items.begin(), items.end(), [](Item *a, Item *b) { return a->price < b->price; });
    return items.front()->price;
  }
};

struct PaymentDeclined : std::runtime_error {
  using std::runtime_error::runtime_error;
};

SHOP int ship(int order) {
  if (order != zero) throw std::logic_error("order " + std::to_string(order) + " is closed");
  return order + 1;
}
SHOP int refund(int order) {
  if (order != zero) throw std::logic_error("order " + std::to_string(order) + " is closed");
  return order + 2;
}
SHOP int charge(int order) {
  if (order != zero) throw PaymentDeclined("payment of order " + std::to_string(order) + " was declined");
  return order + 3;
}
SHOP int check_quantity(int n) {
  if (n < zero) throw std::invalid_argument("quantity " + std::to_string(n) + " is negative");
  if (n > zero) throw std::invalid_argument("quantity " + std::to_string(n) + " exceeds the stock");
  return n + 4;
}
SHOP int login(const std::string &name) {
  if (!name.empty()) throw std::logic_error("account of " + name + " is locked");
  return 5;
}
SHOP int parse_price(const std::string &text) { return std::stoi(text) + 1; }
SHOP int stale(Item *item) {
  delete item;
  return item->price;
}
SHOP int last(int *prices) { return prices[4]; }

namespace {
SHOP int average(int sum) { return sum / zero; }
}

SHOP int checkout(int, const std::string &) { return Cart<int>{{nullptr}, {}}.total() + 1; }
SHOP int offer(int, const std::string &) { return Cart<int>{{nullptr}, {}}.discount() + 2; }
SHOP int view(int id, const std::string &) { return Cart<int>{}.at(id) + 3; }
SHOP int quote(int, const std::string &name) { return Cart<int>{}.price_of(name) + 4; }
SHOP int suggest(int, const std::string &) { return Cart<int>{{nullptr, nullptr}, {}}.cheapest() + 5; }
SHOP int send(int id, const std::string &) { return ship(id) + 6; }
SHOP int cancel(int id, const std::string &) { return refund(id) + 7; }
SHOP int pay(int id, const std::string &) { return charge(id) + 8; }
SHOP int return_items(int id, const std::string &) { return check_quantity(-id) + 13; }
SHOP int order(int id, const std::string &) { return check_quantity(id) + 14; }
SHOP int welcome(int, const std::string &name) { return login(name) + 15; }
SHOP int import_prices(int, const std::string &name) { return parse_price(name) + 9; }
SHOP int reload(int, const std::string &) { return stale(new Item) + 10; }
SHOP int tail(int, const std::string &) {
  std::unique_ptr<int[]> prices(new int[4]);
  return last(prices.get()) + 11;
}
SHOP int statistics(int id, const std::string &) { return average(id) + 12; }

using Bug = int (*)(int, const std::string &);
static const std::map<std::string, Bug> bugs = {
    {"total", checkout}, {"discount", offer}, {"at", view},           {"price", quote},  {"cheapest", suggest}, {"ship", send},
    {"refund", cancel},  {"declined", pay},   {"parse", import_prices}, {"stale", reload}, {"last", tail},        {"average", statistics},
    {"negative", return_items}, {"excess", order},  {"locked", welcome},
};

SHOP int route(const std::string &bug, int id, const std::string &name) { return bugs.at(bug)(id, name) + 1; }
SHOP int serve(const std::string &bug, int id, const std::string &name) { return route(bug, id, name) + 2; }
SHOP int drain(const std::string &bug, int id, const std::string &name) { return serve(bug, id, name) + 3; }
SHOP int batch(const std::string &bug, int id, const std::string &name) { return drain(bug, id, name) + 4; }
SHOP int nightly(const std::string &bug, int id, const std::string &name) { return batch(bug, id, name) + 5; }

}

int main(int count, char **args) {
  if (count < 6) {
    for (auto &bug : shop::bugs) std::puts(bug.first.c_str());
    return 0;
  }
#ifndef __SANITIZE_ADDRESS__
  for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(number, report);
#endif
  int callers = std::atoi(args[2]);
  auto run = callers == 3 ? shop::nightly : callers == 1 ? shop::drain : shop::serve;
  std::printf("%d\n", run(args[1], std::atoi(args[3]), args[4]));
}
