"""Fails on demand: shop.py BUG CALLERS ID NAME caught|crash."""
import json
import sys
import traceback


class PaymentDeclined(Exception):
    pass


class Closed(Exception):
    pass


class Invalid(ValueError):
    pass


class Cart(object):
    def __init__(self, items):
        self.items = items

    def total(self):
        return sum(item.price for item in self.items)

    def discount(self):
        first = self.items[0]
        return first.price / 10

    def pick(self, n):
        return self.items[n]

    def stock_of(self, name):
        return {"tea": 1}[name]

    def cheapest(self):
        return sorted(self.items, key=lambda item: item["price"])[0]


def checkout(id, name):
    return Cart([None]).total()


def offer(id, name):
    return Cart([None]).discount()


def view(id, name):
    return Cart([]).pick(id)


def reserve(id, name):
    return Cart([]).stock_of(name)


def suggest(id, name):
    return Cart([{"name": name}]).cheapest()


def average(carts, sum):
    return sum / carts


def statistics(id, name):
    return average(0, id)


def charge(order):
    raise PaymentDeclined("payment of order %s was declined" % order)


def pay(id, name):
    charge(id)


def fail(message):
    raise Invalid(message)


def check_email(name):
    fail("customer %r has no address" % name)


def check_address(name):
    fail("customer %r has no address" % name)


def register(id, name):
    check_email(name)


def deliver(id, name):
    check_address(name)


def ship(order):
    raise Closed("order %s is closed" % order)


def refund(order):
    raise Closed("order %s is closed" % order)


def send(id, name):
    ship(id)


def cancel(id, name):
    refund(id)


def check_quantity(n):
    if n < 0:
        raise Invalid("quantity %d is negative" % n)
    raise Invalid("quantity %d exceeds the stock" % n)


def return_items(id, name):
    check_quantity(-id)


def order(id, name):
    check_quantity(id)


def login(name):
    raise Closed("account of %s is locked" % name)


def welcome(id, name):
    login(name)


def parse_price(text):
    return int(text)


def import_prices(id, name):
    try:
        return parse_price(name)
    except ValueError as e:
        raise Invalid("line %d of the price list is wrong" % id) from e


def read_config(path):
    with open(path) as f:
        return f.read()


def configure(id, name):
    return read_config("/nowhere/shop-%d.json" % id)


def read_event(text):
    return json.loads(text)


def follow(id, name):
    return read_event('{"id": %d, "name": %s}' % (id, name))


def walk(category, depth):
    return visit(category, depth + 1)


def visit(category, depth):
    return walk(category, depth + 1)


def browse(id, name):
    return walk(name, 0)


BUGS = {
    "total": checkout, "discount": offer, "pick": view, "stock": reserve, "cheapest": suggest, "average": statistics,
    "declined": pay, "email": register, "address": deliver, "ship": send, "refund": cancel, "parse": import_prices,
    "negative": return_items, "excess": order, "locked": welcome, "config": configure, "event": follow, "walk": browse,
}


def route(bug, id, name):
    return BUGS[bug](id, name)


def serve(bug, id, name):
    return route(bug, id, name)


def drain(bug, id, name):
    return serve(bug, id, name)


def batch(bug, id, name):
    return drain(bug, id, name)


def nightly(bug, id, name):
    return batch(bug, id, name)


def main():
    if len(sys.argv) < 6:
        print("\n".join(BUGS))
        return
    bug, callers, id, name, mode = sys.argv[1:]
    run = {"0": serve, "1": drain, "3": nightly}[callers]
    if mode == "crash":
        run(bug, int(id), name)
    try:
        run(bug, int(id), name)
    except Exception as e:
        print("type: %s\nmessage: %s\n%s" % (type(e).__name__, e, traceback.format_exc()))


main()
