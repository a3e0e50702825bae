// Fails on demand: shop BUG CALLERS ID NAME crash.
use std::cell::RefCell;
use std::collections::HashMap;

pub struct Item {
    price: Option<i64>,
}

pub struct Cart {
    items: Vec<Item>,
}

impl Cart {
    #[inline(never)]
    fn total(&self) -> i64 {
        let mut sum = 0;
        for item in &self.items {
            sum += item.price.unwrap();
        }
        sum
    }
    #[inline(never)]
    fn discount(&self) -> i64 {
        self.items[0].price.unwrap() / 10
    }
    #[inline(never)]
    fn pick(&self, n: i64) -> &Item {
        &self.items[n as usize]
    }
    #[inline(never)]
    fn most(&self) -> i64 {
        self.items.iter().map(|item| item.price.expect("item has no price")).sum()
    }
}

mod orders {
    #[inline(never)]
    pub fn ship(order: i64) -> i64 {
        if order > 0 {
            panic!("order {} is closed", order);
        }
        order
    }
    #[inline(never)]
    pub fn refund(order: i64) -> i64 {
        if order > 0 {
            panic!("order {} is closed", order);
        }
        order * 2
    }
    #[inline(never)]
    pub fn charge(order: i64) -> i64 {
        let answer: Result<i64, String> = Err(format!("payment of order {} was declined", order));
        answer.unwrap()
    }
}

#[inline(never)]
fn checkout(_: i64, _: &str) -> i64 { Cart { items: vec![Item { price: None }] }.total() + 1 }
#[inline(never)]
fn offer(_: i64, _: &str) -> i64 { Cart { items: vec![Item { price: None }] }.discount() + 2 }
#[inline(never)]
fn view(id: i64, _: &str) -> i64 { Cart { items: vec![] }.pick(id).price.unwrap_or(0) + 3 }
#[inline(never)]
fn summarize(_: i64, _: &str) -> i64 { Cart { items: vec![Item { price: None }] }.most() + 4 }
#[inline(never)]
fn average(sum: i64, carts: i64) -> i64 { sum / carts }
#[inline(never)]
fn statistics(id: i64, name: &str) -> i64 { average(id, name.matches('#').count() as i64) + 5 }
#[inline(never)]
fn check_quantity(n: i64) -> i64 {
    if n < 0 {
        panic!("quantity {} is negative", n);
    }
    panic!("quantity {} exceeds the stock", n);
}
#[inline(never)]
fn return_items(id: i64, _: &str) -> i64 { check_quantity(-id) + 12 }
#[inline(never)]
fn order(id: i64, _: &str) -> i64 { check_quantity(id) + 13 }
#[inline(never)]
fn login(name: &str) -> i64 { panic!("account of {} is locked", name) }
#[inline(never)]
fn welcome(_: i64, name: &str) -> i64 { login(name) + 14 }
#[inline(never)]
fn parse_price(text: &str) -> i64 { text.parse::<i64>().unwrap() }
#[inline(never)]
fn import_prices(_: i64, name: &str) -> i64 { parse_price(name) + 6 }
#[inline(never)]
fn read_config(path: &str) -> i64 { std::fs::read(path).unwrap().len() as i64 }
#[inline(never)]
fn configure(id: i64, _: &str) -> i64 { read_config(&format!("/nowhere/shop-{}.json", id)) + 7 }
#[inline(never)]
fn reserve(_: i64, name: &str) -> i64 { HashMap::from([("tea", 1)])[name] + 8 }
#[inline(never)]
fn lend(id: i64, _: &str) -> i64 {
    let cell = RefCell::new(id);
    let first = cell.borrow_mut();
    let second = cell.borrow_mut();
    *first + *second
}
#[inline(never)]
fn send(id: i64, _: &str) -> i64 { orders::ship(id) + 9 }
#[inline(never)]
fn cancel(id: i64, _: &str) -> i64 { orders::refund(id) + 10 }
#[inline(never)]
fn pay(id: i64, _: &str) -> i64 { orders::charge(id) + 11 }

const BUGS: [(&str, fn(i64, &str) -> i64); 15] = [
    ("total", checkout), ("discount", offer), ("pick", view), ("sum", summarize), ("average", statistics), ("parse", import_prices),
    ("config", configure), ("stock", reserve), ("lend", lend), ("ship", send), ("refund", cancel), ("declined", pay),
    ("negative", return_items), ("excess", order), ("locked", welcome),
];

#[inline(never)]
fn route(bug: &str, id: i64, name: &str) -> i64 { BUGS.iter().find(|b| b.0 == bug).unwrap().1(id, name) + 1 }
#[inline(never)]
fn serve(bug: &str, id: i64, name: &str) -> i64 { route(bug, id, name) + 2 }
#[inline(never)]
fn drain(bug: &str, id: i64, name: &str) -> i64 { serve(bug, id, name) + 3 }
#[inline(never)]
fn batch(bug: &str, id: i64, name: &str) -> i64 { drain(bug, id, name) + 4 }
#[inline(never)]
fn nightly(bug: &str, id: i64, name: &str) -> i64 { batch(bug, id, name) + 5 }

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 6 {
        BUGS.iter().for_each(|b| println!("{}", b.0));
        return;
    }
    let run = match args[2].as_str() {
        "0" => serve,
        "1" => drain,
        "3" => nightly,
        _ => panic!("CALLERS is 0, 1 or 3"),
    };
    println!("{}", run(&args[1], args[3].parse().unwrap(), &args[4]));
}
