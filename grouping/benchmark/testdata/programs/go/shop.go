// Shop fails on demand: shop BUG CALLERS ID NAME caught|crash.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
)

type item struct{ price, stock int }

type cart struct {
	items  []*item
	prices map[string]int
}

func (c *cart) total() int {
	sum := 0
	for _, i := range c.items {
		sum += i.price
	}
	return sum
}

func (c *cart) discount() int { return c.items[0].price / 10 }

func (c *cart) pick(n int) *item { return c.items[n] }

func (c *cart) setPrice(name string) { c.prices[name] = 1 }

func (c *cart) cheapest() *item {
	sort.Slice(c.items, func(a, b int) bool { return c.items[a].price < c.items[b].price })
	return c.items[0]
}

func checkout() int  { return (&cart{items: []*item{nil}}).total() }
func offer() int     { return (&cart{items: []*item{nil}}).discount() }
func view(n int) int { return (&cart{}).pick(n).price }
func label(n string) { (&cart{}).setPrice(n) }
func suggest() int   { return (&cart{items: []*item{nil, nil}}).cheapest().price }
func average(n int) int {
	carts := strings.Count("", "x")
	return n / carts
}

type declined struct{ order int }

func (d declined) Error() string { return fmt.Sprintf("payment of order %d was declined", d.order) }

func charge(order int) { panic(declined{order}) }
func pay(order int)    { charge(order) }

func fail(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

func checkEmail(name string)   { fail("customer %q has no address", name) }
func checkAddress(name string) { fail("customer %q has no address", name) }
func register(name string)     { checkEmail(name) }
func deliver(name string)      { checkAddress(name) }

func ship(order int)   { panic(fmt.Errorf("order %d is closed", order)) }
func refund(order int) { panic(fmt.Errorf("order %d is closed", order)) }
func send(order int)   { ship(order) }
func cancel(order int) { refund(order) }

func checkQuantity(n int) {
	if n < 0 {
		panic(fmt.Errorf("quantity %d is negative", n))
	}
	panic(fmt.Errorf("quantity %d exceeds the stock", n))
}

func order(n int) { checkQuantity(n) }

func login(name string)   { panic(fmt.Errorf("account of %s is locked", name)) }
func welcome(name string) { login(name) }

func parsePrice(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func importPrices(name string) int { return parsePrice(name) }

func readConfig(id int) []byte {
	text, err := os.ReadFile(fmt.Sprintf("/nowhere/shop-%d.json", id))
	if err != nil {
		panic(errors.Join(err))
	}
	return text
}

func configure(id int) int { return len(readConfig(id)) }

var bugs = map[string]func(id int, name string){
	"total":    func(int, string) { checkout() },
	"discount": func(int, string) { offer() },
	"pick":     func(id int, _ string) { view(id) },
	"price":    func(_ int, name string) { label(name) },
	"cheapest": func(int, string) { suggest() },
	"average":  func(id int, _ string) { average(id) },
	"declined": func(id int, _ string) { pay(id) },
	"email":    func(_ int, name string) { register(name) },
	"address":  func(_ int, name string) { deliver(name) },
	"ship":     func(id int, _ string) { send(id) },
	"refund":   func(id int, _ string) { cancel(id) },
	"negative": func(id int, _ string) { order(-id) },
	"excess":   func(id int, _ string) { order(id) },
	"locked":   func(_ int, name string) { welcome(name) },
	"parse":    func(_ int, name string) { importPrices(name) },
	"config":   func(id int, _ string) { configure(id) },
}

func route(bug string, id int, name string)   { bugs[bug](id, name) }
func serve(bug string, id int, name string)   { route(bug, id, name) }
func drain(bug string, id int, name string)   { serve(bug, id, name) }
func batch(bug string, id int, name string)   { drain(bug, id, name) }
func nightly(bug string, id int, name string) { batch(bug, id, name) }

func report() {
	reason := recover()
	fmt.Printf("type: %T\nmessage: %v\n%s", reason, reason, debug.Stack())
}

func main() {
	if len(os.Args) < 6 {
		for name := range bugs {
			fmt.Println(name)
		}
		return
	}
	bug, name := os.Args[1], os.Args[4]
	id, _ := strconv.Atoi(os.Args[3])
	if os.Args[5] == "caught" {
		defer report()
	}
	callers := map[string]func(string, int, string){"0": serve, "1": drain, "3": nightly}
	if !slices.Contains([]string{"0", "1", "3"}, os.Args[2]) {
		panic("CALLERS is 0, 1 or 3")
	}
	callers[os.Args[2]](bug, id, name)
}
