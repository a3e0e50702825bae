package grouping

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

var goVariants = []variants{{
	name: "go",
	base: thrown("runtime.boundsError", "index out of range [5] with length 3", `
goroutine 108 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:24 +0x5e
panic({0x5a8c20?, 0xc00001c0f0?})
	/usr/local/go/src/runtime/panic.go:884 +0x213
github.com/acme/shop/v2/cart.(*Cart).Item.func1(0xc000010000, 0x5)
	/home/alice/shop/cart/cart.go:41 +0x1d
github.com/acme/shop/v2/cart.Map[...](...)
	/home/alice/shop/cart/map.go:7
main.main()
	/home/alice/shop/main.go:12 +0x25
created by main.start in goroutine 1
	/home/alice/shop/main.go:30 +0x99`),
	same: map[string]Error{
		"addresses, lines, paths, versions, closures": thrown("runtime.boundsError", "index out of range [9] with length 4", `
goroutine 7 [running]:
panic({0x1?, 0x2?})
	/opt/go/src/runtime/panic.go:900 +0x1
github.com/acme/shop/v3/cart.(*Cart).Item.func2(0xc0000aa000, 0x9)
	/go/pkg/shop/cart/cart.go:44 +0x2d
github.com/acme/shop/v3/cart.Map[...](...)
	/go/pkg/shop/cart/map.go:8
main.main()
	/go/pkg/shop/main.go:13 +0x26`),
		"both lines in one": {Type: "runtime.boundsError", Message: "index out of range [1] with length 1", StackTrace: []string{
			"github.com/acme/shop/v2/cart.(*Cart).Item.func1(0xc000010000, 0x5) /home/alice/shop/cart/cart.go:41 +0x1d",
			"github.com/acme/shop/v2/cart.Map[...](...)\t/home/alice/shop/cart/map.go:7",
			"main.main() /home/alice/shop/main.go:12 +0x25"}},
		"without arguments": thrown("runtime.boundsError", "index out of range [5] with length 3", `
github.com/acme/shop/v2/cart.(*Cart).Item.func1
	/home/alice/shop/cart/cart.go:41
github.com/acme/shop/v2/cart.Map[...]
	/home/alice/shop/cart/map.go:7
main.main
	/home/alice/shop/main.go:12`),
	},
	other: map[string]Error{
		"function": thrown("runtime.boundsError", "index out of range [5] with length 3", `
github.com/acme/shop/v2/cart.(*Cart).Total(0xc000010000, 0x5)
	/home/alice/shop/cart/cart.go:41 +0x1d
main.main()
	/home/alice/shop/main.go:12 +0x25`),
		"package": thrown("runtime.boundsError", "index out of range [5] with length 3", `
github.com/acme/shop/v2/list.(*Cart).Item(0xc000010000, 0x5)
	/home/alice/shop/list/cart.go:41 +0x1d
main.main()
	/home/alice/shop/main.go:12 +0x25`),
	},
}}

var rubyVariants = []variants{{
	name: "ruby",
	base: thrown("ActiveRecord::RecordNotFound", "Couldn't find User with 'id'=42", "/home/alice/app/models/user.rb:13:in `block (2 levels) in find_all'\n"+
		"\tfrom /home/alice/.gem/ruby/3.1.0/gems/activerecord-7.0.1/lib/active_record/core.rb:284:in `find'\n"+
		"\tfrom /home/alice/app/views/_app_views_users_show_html_erb___123_456:9:in `_app_views_users_show_html_erb___123_456'\n"+
		"\tfrom /home/alice/app/controllers/users_controller.rb:5:in `show'"),
	same: map[string]Error{
		"lines, paths, gems": thrown("ActiveRecord::RecordNotFound", "Couldn't find User with 'id'=7", "/srv/app/models/user.rb:15:in `block in find_all'\n"+
			"/usr/lib/ruby/gems/3.2.0/gems/activerecord-7.1.0/lib/active_record/core.rb:300:in `find'\n"+
			"/srv/app/views/_app_views_users_show_html_erb___789_12:9:in `_app_views_users_show_html_erb___789_12'\n"+
			"/srv/app/controllers/users_controller.rb:6:in `show'"),
	},
	other: map[string]Error{
		"method": thrown("ActiveRecord::RecordNotFound", "Couldn't find User with 'id'=42", "/home/alice/app/models/user.rb:13:in `find_one'\n"+
			"\tfrom /home/alice/app/controllers/users_controller.rb:5:in `show'"),
	},
}, {
	name:  "ruby 3.4",
	base:  thrown("KeyError", "key not found: :a", "/app/a.rb:13:in `func'\n/app/b.rb:2:in `<main>'"),
	same:  map[string]Error{"quotes and classes": thrown("KeyError", "key not found: :b", "/app/a.rb:13:in 'Klass#func'\n/app/b.rb:2:in '<main>'")},
	other: map[string]Error{"method": thrown("KeyError", "key not found: :a", "/app/a.rb:13:in `other'\n/app/b.rb:2:in `<main>'")},
}}

var phpVariants = []variants{{
	name: "php",
	base: thrown("App\\PaymentFailed", "card was declined", `
PHP Fatal error:  Uncaught App\PaymentFailed: card was declined in /var/www/app/Pay.php:12
#0 /var/www/app/Shop.php(33): App\Pay->charge(Object(App\Card), 100)
#1 [internal function]: App\Shop->App\{closure}(Array)
#2 /var/www/vendor/laravel/framework/src/Illuminate/Pipeline.php(99): Illuminate\Pipeline->call()
#3 /var/www/public/index.php(3): App\Kernel::handle('GET')
#4 {main}`),
	same: map[string]Error{"lines, paths, arguments": thrown("App\\PaymentFailed", "card was declined", `
#0 /srv/r/17/app/Shop.php(34): App\Pay->charge(Object(App\Card), 250)
#1 [internal function]: App\Shop->App\{closure}(NULL)
#2 /srv/r/17/vendor/laravel/framework/src/Illuminate/Pipeline.php(101): Illuminate\Pipeline->call()
#3 /srv/r/17/public/index.php(4): App\Kernel::handle('POST')
#4 {main}`)},
	other: map[string]Error{
		"function": thrown("App\\PaymentFailed", "card was declined", `
#0 /var/www/app/Shop.php(33): App\Pay->refund(Object(App\Card), 100)
#3 /var/www/public/index.php(3): App\Kernel::handle('GET')
#4 {main}`),
		"type": thrown("App\\RefundFailed", "card was declined", `
#0 /var/www/app/Shop.php(33): App\Pay->charge(Object(App\Card), 100)
#3 /var/www/public/index.php(3): App\Kernel::handle('GET')
#4 {main}`),
	},
}}

var dotnetVariants = []variants{{
	name: "dotnet",
	base: thrown("System.InvalidOperationException", "Sequence contains no elements", `
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Acme.Orders.<>c__DisplayClass3_0.<Find>b__0(Order o) in /src/Orders.cs:line 42
   at Acme.Orders.<LoadAsync>d__5.MoveNext() in /src/Orders.cs:line 50
--- End of stack trace from previous location ---
   at System.Runtime.CompilerServices.TaskAwaiter.ThrowForNonSuccess(Task task)
   at Acme.Cache.<Read>g__Local|3_0(List`+"`"+`1 list) in /src/Cache.cs:line 2`),
	same: map[string]Error{"lines, paths, counters": thrown("System.InvalidOperationException", "Sequence contains no elements", `
   at System.Linq.ThrowHelper.ThrowNoElementsException()
   at Acme.Orders.<>c__DisplayClass4_0.<Find>b__1(Order o) in C:\b\Orders.cs:line 43
   at Acme.Orders.<LoadAsync>d__9.MoveNext() in C:\b\Orders.cs:line 51
   at Acme.Cache.<Read>g__Local|4_1(List`+"`"+`1 list)`)},
	other: map[string]Error{"method": thrown("System.InvalidOperationException", "Sequence contains no elements", `
   at Acme.Orders.<>c__DisplayClass3_0.<Count>b__0(Order o) in /src/Orders.cs:line 42
   at Acme.Orders.<LoadAsync>d__5.MoveNext() in /src/Orders.cs:line 50
   at Acme.Cache.<Read>g__Local|3_0(List`+"`"+`1 list) in /src/Cache.cs:line 2`)},
}, {
	name: "dotnet chain",
	base: thrown("System.AggregateException", "One or more errors occurred.", `
System.AggregateException: One or more errors occurred.
 ---> System.NullReferenceException: Object reference not set to an instance of an object.
   at Acme.Db.Query(String sql) in /src/Db.cs:line 3
   --- End of inner exception stack trace ---
   at Acme.Web.Handle(Request r) in /src/Web.cs:line 9`),
	same: map[string]Error{"wrapper": thrown("Acme.Failed", "no", `
Acme.Failed: no
 ---> System.NullReferenceException: Object reference not set to an instance of an object.
   at Acme.Db.Query(String sql) in /src/Db.cs:line 4
   --- End of inner exception stack trace ---
   at Acme.Job.Run() in /src/Job.cs:line 9`)},
	other: map[string]Error{"cause": thrown("System.AggregateException", "One or more errors occurred.", `
System.AggregateException: One or more errors occurred.
 ---> System.NullReferenceException: Object reference not set to an instance of an object.
   at Acme.Db.Execute(String sql) in /src/Db.cs:line 3
   --- End of inner exception stack trace ---
   at Acme.Web.Handle(Request r) in /src/Web.cs:line 9`)},
}}

var otherVariants = []variants{{
	name: "rust",
	base: thrown("panic", "called Option::unwrap() on a None value", `
thread 'main' panicked at src/main.rs:27:5:
   0: rust_begin_unwind
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/std/src/panicking.rs:645:5
   1: core::panicking::panic_fmt::h3e3f989126541ea9
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/panicking.rs:72:14
   2: shop::cart::total::{{closure}}::h00112233445566aa
             at ./src/cart.rs:27:5
   3: shop::main::h99112233445566bb
             at ./src/main.rs:3:5`),
	same: map[string]Error{"hashes and lines": thrown("panic", "called Option::unwrap() on a None value", `
   5: shop::cart::total::{{closure}}::haa112233445566aa
             at ./src/cart.rs:29:5
   6: shop::main::hbb112233445566bb
             at ./src/main.rs:4:5`)},
	other: map[string]Error{"function": thrown("panic", "called Option::unwrap() on a None value", `
   5: shop::cart::count::{{closure}}::haa112233445566aa
             at ./src/cart.rs:29:5
   6: shop::main::hbb112233445566bb`)},
}, {
	name: "elixir",
	base: thrown("RuntimeError", "oops", `
(my_app 0.1.0) lib/a.ex:12: MyApp.A.run/2
(cowboy 2.9.0) /app/deps/cowboy/src/cowboy_stream_h.erl:295: :cowboy_stream_h.request_process/3`),
	same: map[string]Error{"versions, lines, paths": thrown("RuntimeError", "oops", `
(my_app 0.2.0) lib/a.ex:14: MyApp.A.run/2
(cowboy 2.9.1) /srv/deps/cowboy/src/cowboy_stream_h.erl:300: :cowboy_stream_h.request_process/3`)},
	other: map[string]Error{"function": thrown("RuntimeError", "oops", `
(my_app 0.1.0) lib/a.ex:12: MyApp.A.stop/2
(cowboy 2.9.0) /app/deps/cowboy/src/cowboy_stream_h.erl:295: :cowboy_stream_h.request_process/3`)},
}, {
	name: "ids in messages beside a trace",
	base: thrown("NotFound", "user 'alice' not found in tenant 12 (request 7f3a9c21)", `
  File "/app/users.py", line 5, in load`),
	same: map[string]Error{"names and ids": thrown("NotFound", "user 'bob' not found in tenant 13 (request 11aa22bb)", `
  File "/app/users.py", line 6, in load`)},
	other: map[string]Error{"words": thrown("NotFound", "cannot connect to database", `
  File "/app/users.py", line 5, in load`)},
}, {
	name:  "parts of a program in messages",
	base:  Error{Type: "Unavailable", Message: "kafka: broker down"},
	other: map[string]Error{"another part": {Type: "Unavailable", Message: "redis: broker down"}},
}, {
	name: "codes in messages",
	base: Error{Type: "Error", Message: "GET https://a.example/v1 answered with status 404"},
	same: map[string]Error{"another address": {Type: "Error", Message: "GET https://b.example/v2 answered with status 404"}},
	other: map[string]Error{
		"another status": {Type: "Error", Message: "GET https://a.example/v1 answered with status 503"},
		"another method": {Type: "Error", Message: "PUT https://a.example/v1 answered with status 404"},
	},
}, {
	name: "hosts in a message",
	base: Error{Type: "Unavailable", Message: "no replica reachable:\n db-17.shop.net:5432 refused\n db-18.shop.net:5432 refused"},
	same: map[string]Error{"other hosts": {Type: "Unavailable", Message: "no replica reachable:\n db-23.shop.net:5432 refused\n db-24.shop.net:5432 refused"}},
}, {
	name:  "types of own packages in Go",
	base:  thrown("*errors.NotFoundError", "order 7", "goroutine 1 [running]:\nmain.show(0x1)\n\t/app/main.go:3 +0x1"),
	same:  map[string]Error{"another order": thrown("*errors.NotFoundError", "order 8", "goroutine 9 [running]:\nmain.show(0x2)\n\t/app/main.go:4 +0x2")},
	other: map[string]Error{"another type": thrown("*errors.ForbiddenError", "order 7", "goroutine 1 [running]:\nmain.show(0x1)\n\t/app/main.go:3 +0x1")},
}, {
	name: "a panic that went on",
	base: thrown("", "", "panic: runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]\n\ngoroutine 1 [running]:\nmain.show(0x1)\n\t/app/main.go:3 +0x1"),
	same: map[string]Error{"that was not recovered": thrown("", "", "panic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 1 [running]:\nmain.show(0x1)\n\t/app/main.go:3 +0x1")},
}, {
	name: "no trace",
	base: Error{Type: "TimeoutError", Message: `GET https://a.example/v1/users/42?x=1 timed out after 30s for "alice" id=7f3a9c21 user=alice`},
	same: map[string]Error{
		"values":           {Type: "TimeoutError", Message: `GET https://b.example/v2/users/9 timed out after 45s for "bob" id=99 user=bob`},
		"unusable trace":   {Type: "TimeoutError", Message: `GET https://b.example/v2/users/9 timed out after 45s for "bob" id=99 user=bob`, StackTrace: []string{"", "0x0012", "12"}},
		"further lines":    {Type: "TimeoutError", Message: "GET https://b.example/v2/users/9 timed out after 45s for \"bob\" id=99 user=bob\n3"},
		"spelling of case": {Type: "TimeoutError", Message: `get https://b.example/v2/users/9 Timed out after 45s for "bob" id=99 user=bob`},
	},
	other: map[string]Error{
		"type":  {Type: "AuthError", Message: `GET https://a.example/v1/users/42?x=1 timed out after 30s for "alice" id=7f3a9c21 user=alice`},
		"words": {Type: "TimeoutError", Message: `GET https://a.example/v1/users/42?x=1 was refused after 30s`},
	},
}}

// The error may be named in a message alone.
var causeVariants = []variants{{
	name: "a remote error in the message",
	base: thrown("java.lang.IllegalStateException", "no such order 4711", `
java.lang.IllegalStateException: no such order 4711
	at com.acme.order.Store.find(Store.java:41)
	at com.acme.order.Service.show(Service.java:12)`),
	same: map[string]Error{
		"a wrapper of the same place": thrown("java.io.IOException", "java.lang.IllegalStateException: no such order 12", `
	at com.acme.order.Store.find(Store.java:44)
	at com.acme.order.Service.show(Service.java:12)`),
		"two wrappers": thrown("com.acme.RemoteException", "java.io.IOException: java.lang.IllegalStateException: no such order 12", `
	at com.acme.order.Store.find(Store.java:44)
	at com.acme.order.Service.show(Service.java:12)`),
		"the name of a logger instead of a type": thrown("com.acme.order.Worker", "cannot show 12: java.lang.IllegalStateException: no such order 12", `
	at com.acme.order.Store.find(Store.java:44)
	at com.acme.order.Service.show(Service.java:12)`),
	},
	other: map[string]Error{
		"another error in the message": thrown("java.io.IOException", "java.lang.SecurityException: no such order 12", `
	at com.acme.order.Store.find(Store.java:44)
	at com.acme.order.Service.show(Service.java:12)`),
		"no more than a name": thrown("java.lang.RuntimeException", "Error: no such order 12", `
	at com.acme.order.Store.find(Store.java:44)
	at com.acme.order.Service.show(Service.java:12)`),
	},
}, {
	name: "a message that says that there is none",
	base: thrown("java.io.EOFException", "", `
	at com.acme.order.Wire.read(Wire.java:9)
	at com.acme.order.Wire.open(Wire.java:5)
	at com.acme.order.Main.main(Main.java:1)`),
	same: map[string]Error{"null": thrown("java.io.EOFException", "null", `
	at com.acme.order.Wire.read(Wire.java:9)
	at com.acme.order.Wire.open(Wire.java:5)
	at com.acme.order.Main.main(Main.java:1)`)},
}}

// fieldVariants are whole traces as runtimes print them, with the
// text around. testdata/traces.txt holds them: "=== base NAME" begins
// an error, "=== same" what must join it, "=== other" what must not.
var fieldVariants = parseVariants(mustRead("testdata/traces.txt"))

// readmeVariants are the examples of README.md.
var readmeVariants = func() (all []variants) {
	for _, block := range strings.Split(mustRead("README.md"), "```errors\n")[1:] {
		example, _, _ := strings.Cut(block, "```")
		all = append(all, parseVariants(strings.ReplaceAll(example, "=== base\n", fmt.Sprintf("=== base README.md, example %d\n", len(all)+1)))...)
	}
	return all
}()

func mustRead(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func parseVariants(text string) (all []variants) {
	for n, part := range strings.Split(text, "=== ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		what, name, _ := strings.Cut(head, " ")
		if what == "base" {
			all = append(all, variants{name, readError(body), map[string]Error{}, map[string]Error{}})
			continue
		}
		one := all[len(all)-1]
		map[string]map[string]Error{"same": one.same, "other": one.other}[what][fmt.Sprintf("%s, part %d of the file", what, n)] = readError(body)
	}
	return all
}

// readError reads "type: " and "message: ", if present, and the trace.
func readError(s string) (e Error) {
	for _, member := range []struct {
		name string
		into *string
	}{{"type: ", &e.Type}, {"message: ", &e.Message}} {
		if rest, ok := strings.CutPrefix(s, member.name); ok {
			*member.into, s, _ = strings.Cut(rest, "\n")
		}
	}
	e.StackTrace = strings.Split(strings.Trim(s, "\n"), "\n")
	return e
}

// A trace in the message is the trace, with the
// same words, even beside a field of blank pieces.
func TestTraceInMessage(t *testing.T) {
	for _, trace := range []string{
		"Traceback (most recent call last):\n  File \"/app/a.py\", line 3, in load\n    x\nValueError: no such cart",
		"panic: no such cart\n\ngoroutine 1 [running]:\nmain.load(0xc000)\n\t/app/a.go:3 +0x1",
		"java.lang.IllegalStateException: no such cart\n\tat com.acme.Cart.load(Cart.java:3)",
		"Uncaught Error: no such cart\n    at load (/app/a.js:3:1)",
	} {
		var g Grouper
		sent := g.Fingerprint(Error{Message: "no such cart", StackTrace: []string{trace}}).Deciding()
		for what, e := range map[string]Error{
			"the message": {Message: trace}, "an empty piece": {Message: trace, StackTrace: []string{""}}, "blank pieces": {Message: trace, StackTrace: []string{" ", "\n"}},
		} {
			if g.Fingerprint(e).Deciding() != sent {
				t.Errorf("%s moves %q: %+v", what, strings.Split(trace, "\n")[0], g.Fingerprint(e).Explain())
			}
		}
	}
}

// Dart prints most errors without their type. Twelve of
// them, thrown at one place, are twelve groups.
func TestDartErrorsAreApart(t *testing.T) {
	groups := map[Hash]string{}
	var g Grouper
	for _, printed := range []string{
		"Bad state: No element", "NoSuchMethodError: The getter 'price' was called on null.", "RangeError (index): Invalid value: Not in inclusive range 0..2: 5",
		"type 'Null' is not a subtype of type 'String' in type cast", "FormatException: Unexpected character (at character 1)",
		"Invalid argument(s): no such cart", "Unsupported operation: Cannot add to an unmodifiable list", "Concurrent modification during iteration: Instance of 'List'.",
		"TimeoutException after 0:00:05.000000: Future not completed", "PlatformException(io, no route, null, null)", "Instance of 'CartClosed'", "Exception: no such cart",
	} {
		e := Error{StackTrace: []string{"Unhandled exception:", printed, "#0      Cart.total (package:shop/cart.dart:12:5)", "#1      main (file:///app/bin/main.dart:5:3)"}}
		hash := g.Fingerprint(e).Deciding().Hash
		if other := groups[hash]; other != "" {
			t.Errorf("%q joins %q", printed, other)
		}
		groups[hash] = printed
	}
}
