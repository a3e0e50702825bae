// Fails on demand: shop.js BUG CALLERS ID NAME caught|crash.
const fs = require('fs');

class PaymentDeclined extends Error {}

class Cart {
  constructor(items) {
    this.items = items;
  }
  total() {
    let sum = 0;
    for (const item of this.items) sum += item.price;
    return sum;
  }
  discount() {
    return this.items[0].price / 10;
  }
  pick(n) {
    return this.items[n].toFixed(2);
  }
  cheapest() {
    return this.items.sort((a, b) => a.offer.price - b.offer.price)[0];
  }
}

function checkout(id, name) {
  return new Cart([null]).total();
}
function offer(id, name) {
  return new Cart([null]).discount();
}
function view(id, name) {
  return new Cart([]).pick(id);
}
function suggest(id, name) {
  return new Cart([{}, {}]).cheapest();
}
function charge(order) {
  throw new PaymentDeclined('payment of order ' + order + ' was declined');
}
function pay(id, name) {
  charge(id);
}
function fail(message) {
  throw new RangeError(message);
}
function checkEmail(name) {
  fail('customer "' + name + '" has no address');
}
function checkAddress(name) {
  fail('customer "' + name + '" has no address');
}
function register(id, name) {
  checkEmail(name);
}
function deliver(id, name) {
  checkAddress(name);
}
function ship(order) {
  throw new Error('order ' + order + ' is closed');
}
function refund(order) {
  throw new Error('order ' + order + ' is closed');
}
function send(id, name) {
  ship(id);
}
function cancel(id, name) {
  refund(id);
}
function checkQuantity(n) {
  if (n < 0) throw new RangeError('quantity ' + n + ' is negative');
  throw new RangeError('quantity ' + n + ' exceeds the stock');
}
function returnItems(id, name) {
  checkQuantity(-id);
}
function buyItems(id, name) {
  checkQuantity(id);
}
function login(name) {
  throw new Error('account of ' + name + ' is locked');
}
function welcome(id, name) {
  login(name);
}
function readEvent(text) {
  return JSON.parse(text);
}
function follow(id, name) {
  return readEvent('{"id": ' + id + ', "name": ' + name + '}');
}
function readConfig(path) {
  return fs.readFileSync(path);
}
function configure(id, name) {
  return readConfig('/nowhere/shop-' + id + '.json');
}
function notify(id, name) {
  return mailer.send(name);
}
function remind(id, name) {
  notify(id, name);
}
function walk(category, depth) {
  return visit(category, depth + 1) + 1;
}
function visit(category, depth) {
  return walk(category, depth + 1) + 1;
}
function browse(id, name) {
  return walk(name, 0);
}

const bugs = {
  total: checkout, discount: offer, pick: view, cheapest: suggest, declined: pay, email: register, address: deliver,
  negative: returnItems, excess: buyItems, locked: welcome, ship: send, refund: cancel, event: follow, config: configure, mailer: remind, walk: browse,
};

function route(bug, id, name) {
  return bugs[bug](id, name);
}
function serve(bug, id, name) {
  return route(bug, id, name);
}
function drain(bug, id, name) {
  return serve(bug, id, name);
}
function batch(bug, id, name) {
  return drain(bug, id, name);
}
function nightly(bug, id, name) {
  return batch(bug, id, name);
}
function main(bug, callers, id, name, mode) {
  const run = {0: serve, 1: drain, 3: nightly}[callers];
  if (mode === 'crash') return run(bug, id, name);
  try {
    run(bug, id, name);
  } catch (e) {
    console.log('type: ' + e.constructor.name + '\nmessage: ' + e.message + '\n' + e.stack);
  }
}

if (process.argv.length < 7) console.log(Object.keys(bugs).join('\n'));
else main(...process.argv.slice(2));
