// Fails on demand: Shop BUG CALLERS ID NAME caught|crash|wrapped.
package com.acme.shop;

import java.io.FileInputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class Shop {
    static class PaymentDeclined extends RuntimeException {
        PaymentDeclined(String message) { super(message); }
    }

    static class Item {
        int price;
        Item offer;
    }

    static class Cart {
        final List<Item> items;

        Cart(Item... items) { this.items = new ArrayList<>(Arrays.asList(items)); }

        int total() {
            int sum = 0;
            for (Item item : items) sum += item.price;
            return sum;
        }

        int discount() { return items.get(0).price / 10; }

        Item pick(int n) { return items.get(n); }

        Item cheapest() {
            items.sort((a, b) -> a.offer.price - b.offer.price);
            return items.get(0);
        }

        void clear() {
            for (Item item : items) items.remove(item);
        }
    }

    static void checkout() { new Cart((Item) null).total(); }
    static void offer() { new Cart((Item) null).discount(); }
    static void view(int n) { new Cart().pick(n); }
    static void suggest() { new Cart(new Item(), new Item()).cheapest(); }
    static void empty() { new Cart(new Item(), new Item(), new Item()).clear(); }
    static int average(int sum, int carts) { return sum / carts; }
    static void statistics(int id) { average(id, 0); }
    static void charge(int order) { throw new PaymentDeclined("payment of order " + order + " was declined"); }
    static void pay(int order) { charge(order); }
    static void fail(String message) { throw new IllegalArgumentException(message); }
    static void checkEmail(String name) { fail("customer '" + name + "' has no address"); }
    static void checkAddress(String name) { fail("customer '" + name + "' has no address"); }
    static void register(String name) { checkEmail(name); }
    static void deliver(String name) { checkAddress(name); }
    static void ship(int order) { throw new IllegalStateException("order " + order + " is closed"); }
    static void refund(int order) { throw new IllegalStateException("order " + order + " is closed"); }
    static void send(int order) { ship(order); }
    static void cancel(int order) { refund(order); }
    static void checkQuantity(int n) {
        if (n < 0) throw new IllegalArgumentException("quantity " + n + " is negative");
        throw new IllegalArgumentException("quantity " + n + " exceeds the stock");
    }
    static void returnItems(int n) { checkQuantity(-n); }
    static void order(int n) { checkQuantity(n); }
    static void login(String name) { throw new IllegalStateException("account of " + name + " is locked"); }
    static void welcome(String name) { login(name); }
    static int parsePrice(String text) { return Integer.parseInt(text); }
    static void importPrices(String name) { parsePrice(name); }

    static void readConfig(String path) throws Exception {
        try (FileInputStream file = new FileInputStream(path)) {
            file.read();
        }
    }

    static void configure(int id) throws Exception { readConfig("/nowhere/shop-" + id + ".json"); }
    static int walk(String category, int depth) { return visit(category, depth + 1) + 1; }
    static int visit(String category, int depth) { return walk(category, depth + 1) + 1; }
    static void browse(String name) { walk(name, 0); }

    interface Bug {
        void run(int id, String name) throws Exception;
    }

    static final Map<String, Bug> BUGS = new LinkedHashMap<>();

    static {
        BUGS.put("total", (id, name) -> checkout());
        BUGS.put("discount", (id, name) -> offer());
        BUGS.put("pick", (id, name) -> view(id));
        BUGS.put("cheapest", (id, name) -> suggest());
        BUGS.put("clear", (id, name) -> empty());
        BUGS.put("average", (id, name) -> statistics(id));
        BUGS.put("declined", (id, name) -> pay(id));
        BUGS.put("email", (id, name) -> register(name));
        BUGS.put("address", (id, name) -> deliver(name));
        BUGS.put("ship", (id, name) -> send(id));
        BUGS.put("refund", (id, name) -> cancel(id));
        BUGS.put("negative", (id, name) -> returnItems(id));
        BUGS.put("excess", (id, name) -> order(id));
        BUGS.put("locked", (id, name) -> welcome(name));
        BUGS.put("parse", (id, name) -> importPrices(name));
        BUGS.put("config", (id, name) -> configure(id));
        BUGS.put("walk", (id, name) -> browse(name));
    }

    static void route(String bug, int id, String name) throws Exception { BUGS.get(bug).run(id, name); }
    static void serve(String bug, int id, String name) throws Exception { route(bug, id, name); }
    static void drain(String bug, int id, String name) throws Exception { serve(bug, id, name); }
    static void batch(String bug, int id, String name) throws Exception { drain(bug, id, name); }
    static void nightly(String bug, int id, String name) throws Exception { batch(bug, id, name); }

    static void start(String bug, String callers, int id, String name) throws Exception {
        switch (callers) {
            case "0": serve(bug, id, name); break;
            case "1": drain(bug, id, name); break;
            case "3": nightly(bug, id, name); break;
            default: throw new Error("CALLERS is 0, 1 or 3");
        }
    }

    static void wrapped(String bug, String callers, int id, String name) {
        try {
            start(bug, callers, id, name);
        } catch (Throwable e) {
            throw new RuntimeException("request " + id + " failed", e);
        }
    }

    static void log(Throwable e) {
        StringWriter text = new StringWriter();
        e.printStackTrace(new PrintWriter(text));
        System.out.println("type: " + e.getClass().getName() + "\nmessage: " + e.getMessage() + "\n" + text);
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 5) {
            System.out.println(String.join("\n", BUGS.keySet()));
            return;
        }
        int id = Integer.parseInt(args[2]);
        if (args[4].equals("crash")) start(args[0], args[1], id, args[3]);
        try {
            if (args[4].equals("wrapped")) wrapped(args[0], args[1], id, args[3]);
            start(args[0], args[1], id, args[3]);
        } catch (Throwable e) {
            log(e);
        }
    }
}
