package grouping

import (
	"strings"
	"testing"
)

// kin is an error and variants of it. What is in same differs from base only in what changes between two occurrences
// of one fault: it must join base. What is in other is another fault: it must not.
type kin struct {
	name  string
	base  Error
	same  map[string]Error
	other map[string]Error
}

func thrown(typ, message, stack string) Error {
	return Error{Type: typ, Message: message, StackTrace: strings.Split(strings.Trim(stack, "\n"), "\n")}
}

// Errors of one fault join, errors of different faults do not, in every language.
func TestKin(t *testing.T) {
	for _, k := range [][]kin{javaKin, javascriptKin, pythonKin, goKin, rubyKin, phpKin, dotnetKin, otherKin} {
		for _, k := range k {
			t.Run(k.name, k.check)
		}
	}
}

func (k kin) check(t *testing.T) {
	var g Grouper
	base := g.Fingerprint(k.base).Deciding()
	why := g.Why(g.Fingerprint(k.base))
	for what, e := range k.same {
		if got := g.Fingerprint(e).Deciding(); got != base {
			t.Errorf("%s must not move it\nbase %+v\n got %+v", what, why, g.Why(g.Fingerprint(e)))
		}
	}
	for what, e := range k.other {
		if g.Fingerprint(e).Deciding() == base {
			t.Errorf("%s must move it\nboth %+v", what, why)
		}
	}
}

// Senders cut traces into strings as they like: lines, all at once, with and without indentation and carriage returns.
func TestPieces(t *testing.T) {
	for _, ks := range [][]kin{javaKin, javascriptKin, pythonKin, goKin, rubyKin, phpKin, dotnetKin} {
		for _, k := range ks {
			var g Grouper
			want := g.Fingerprint(k.base).Deciding()
			whole := strings.Join(k.base.StackTrace, "\n")
			for what, pieces := range map[string][]string{
				"one string":      {whole},
				"crlf":            {strings.ReplaceAll(whole, "\n", "\r\n")},
				"line ends":       strings.SplitAfter(whole, "\n"),
				"blank lines":     strings.SplitAfter(strings.ReplaceAll(whole, "\n", "\n\n"), "\n"),
				"two big strings": {whole[:strings.IndexByte(whole, '\n')], whole[strings.IndexByte(whole, '\n')+1:]},
			} {
				e := Error{Type: k.base.Type, Message: k.base.Message, StackTrace: pieces}
				if got := g.Fingerprint(e).Deciding(); got != want {
					t.Errorf("%s: %s moves it: %+v", k.name, what, g.Why(g.Fingerprint(e)))
				}
			}
		}
	}
}

var javaKin = []kin{{
	name: "java",
	base: thrown("com.acme.PaymentException", "Payment declined for order 4711", `
com.acme.PaymentException: Payment declined for order 4711
	at com.acme.pay.Gateway.lambda$charge$3(Gateway.java:120)
	at com.acme.pay.Gateway$$Lambda$14/0x0000000800c8.apply(Unknown Source)
	at com.acme.pay.Service$$EnhancerBySpringCGLIB$$1a2b3c.pay(<generated>)
	at com.acme.web.Controller$1.run(Controller.java:33)
	at jdk.internal.reflect.GeneratedMethodAccessor12.invoke(Unknown Source)
	at java.base/java.lang.Thread.run(Thread.java:829)`),
	same: map[string]Error{
		"lines, counters, hosts of lambdas, reflection": thrown("com.acme.PaymentException", "Payment declined for order 99", `
	at com.acme.pay.Gateway.lambda$charge$5(Gateway.java:121) ~[pay-1.2.jar:1.2]
	at com.acme.pay.Service$$EnhancerBySpringCGLIB$$ffee.pay(<generated>)
	at app//com.acme.web.Controller$2.run(Controller.java:34)
	at java.base@17.0.1/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)
	at java.base@17.0.1/java.lang.Thread.run(Thread.java:833)`),
		"a flattened line": {Type: "com.acme.PaymentException", Message: "Payment declined for order 1", StackTrace: []string{
			"com.acme.PaymentException: x at com.acme.pay.Gateway.lambda$charge$3(Gateway.java:120) at com.acme.pay.Service.pay(Service.java:1) at com.acme.web.Controller$7.run(Controller.java:33)"}},
	},
	other: map[string]Error{
		"another type": thrown("com.acme.RefundException", "Payment declined for order 4711", `
	at com.acme.pay.Gateway.lambda$charge$3(Gateway.java:120)
	at com.acme.pay.Service.pay(Service.java:12)
	at com.acme.web.Controller$1.run(Controller.java:33)`),
		"another method": thrown("com.acme.PaymentException", "Payment declined for order 4711", `
	at com.acme.pay.Gateway.lambda$refund$3(Gateway.java:120)
	at com.acme.pay.Service.pay(Service.java:12)
	at com.acme.web.Controller$1.run(Controller.java:33)`),
		"another message in the same place": thrown("com.acme.PaymentException", "connection refused", `
	at com.acme.pay.Gateway.lambda$charge$3(Gateway.java:120)
	at com.acme.pay.Service.pay(Service.java:12)
	at com.acme.web.Controller$1.run(Controller.java:33)`),
	},
}, {
	name: "java chain",
	base: thrown("java.lang.RuntimeException", "request 12 failed", `
java.lang.RuntimeException: request 12 failed
	at com.acme.web.Filter.doFilter(Filter.java:20)
	Suppressed: java.io.IOException: close
		at com.acme.io.Stream.close(Stream.java:9)
		... 3 more
Caused by: java.lang.NullPointerException: Cannot invoke "a.b()" because "<local1>" is null
	at java.base/java.util.Objects.requireNonNull(Objects.java:233)
	at com.acme.db.Users.find(Users.java:88)
	... 12 more`),
	same: map[string]Error{
		"another wrapper, another message": thrown("org.acme.Wrapped", "other", `
	at com.acme.web.Other.doFilter(Filter.java:20)
Caused by: java.lang.NullPointerException
	at java.base/java.util.Objects.requireNonNull(Objects.java:233)
	at com.acme.db.Users.find(Users.java:90)
	... 2 more`),
	},
	other: map[string]Error{
		"another cause": thrown("java.lang.RuntimeException", "request 12 failed", `
	at com.acme.web.Filter.doFilter(Filter.java:20)
Caused by: java.lang.NullPointerException: x
	at java.base/java.util.Objects.requireNonNull(Objects.java:233)
	at com.acme.db.Orders.find(Orders.java:88)`),
		"another type of cause": thrown("java.lang.RuntimeException", "request 12 failed", `
	at com.acme.web.Filter.doFilter(Filter.java:20)
Caused by: java.lang.ClassCastException: x
	at java.base/java.util.Objects.requireNonNull(Objects.java:233)
	at com.acme.db.Users.find(Users.java:88)`),
	},
}, {
	name: "java recursion",
	base: thrown("java.lang.StackOverflowError", "", `
	at com.acme.Tree.walk(Tree.java:10)
	at com.acme.Tree.visit(Tree.java:20)
	at com.acme.Tree.walk(Tree.java:10)
	at com.acme.Tree.visit(Tree.java:20)
	at com.acme.Tree.walk(Tree.java:10)
	at com.acme.Main.main(Main.java:1)`),
	same: map[string]Error{"ends elsewhere": thrown("java.lang.StackOverflowError", "", `
	at com.acme.Tree.visit(Tree.java:20)
	at com.acme.Tree.walk(Tree.java:10)
	at com.acme.Tree.visit(Tree.java:20)
	at com.acme.Tree.walk(Tree.java:10)
	at com.acme.Main.main(Main.java:1)`)},
	other: map[string]Error{"another circle": thrown("java.lang.StackOverflowError", "", `
	at com.acme.Graph.walk(Graph.java:10)
	at com.acme.Graph.walk(Graph.java:10)
	at com.acme.Main.main(Main.java:1)`)},
}, {
	name: "kotlin",
	base: thrown("kotlin.KotlinNullPointerException", "", `
	at com.acme.Foo$load$1.invokeSuspend(Foo.kt:31)
	at kotlin.coroutines.jvm.internal.BaseContinuationImpl.resumeWith(ContinuationImpl.kt:33)
	at kotlinx.coroutines.DispatchedTask.run(DispatchedTask.kt:106)`),
	same: map[string]Error{"counter": thrown("kotlin.KotlinNullPointerException", "", `
	at com.acme.Foo$load$2.invokeSuspend(Foo.kt:35)
	at _COROUTINE._BOUNDARY._(CoroutineDebugging.kt:46)
	at kotlinx.coroutines.DispatchedTask.run(DispatchedTask.kt:108)`)},
	other: map[string]Error{"function": thrown("kotlin.KotlinNullPointerException", "", `
	at com.acme.Foo$save$1.invokeSuspend(Foo.kt:31)
	at kotlinx.coroutines.DispatchedTask.run(DispatchedTask.kt:106)`)},
}, {
	name: "scala",
	base: thrown("scala.MatchError", "5 (of class java.lang.Integer)", `
	at com.acme.Foo$.$anonfun$f$1(Foo.scala:10)
	at scala.collection.immutable.List.map(List.scala:246)`),
	same: map[string]Error{"counter": thrown("scala.MatchError", "6 (of class java.lang.Integer)", `
	at com.acme.Foo$.$anonfun$f$2(Foo.scala:11)
	at scala.collection.immutable.List.map(List.scala:240)`)},
	other: map[string]Error{"function": thrown("scala.MatchError", "5 (of class java.lang.Integer)", `
	at com.acme.Foo$.$anonfun$g$1(Foo.scala:10)
	at scala.collection.immutable.List.map(List.scala:246)`)},
}}

var javascriptKin = []kin{{
	name: "node",
	base: thrown("Error", "connect ECONNREFUSED 10.0.0.1:5432", `
Error: connect ECONNREFUSED 10.0.0.1:5432
    at Pool.acquire (/home/alice/app/src/db/pool.js:36:2)
    at async Object.findUser [as find] (/home/alice/app/src/users.js:10:5)
    at async /home/alice/app/src/server.js:112:38
    at Layer.handle (/home/alice/app/node_modules/express/lib/router/layer.js:95:5)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)`),
	same: map[string]Error{"host, path, lines, runtime": thrown("Error", "connect ECONNREFUSED 10.9.8.7:5433", `
    at Pool.acquire (file:///srv/releases/20240101/src/db/pool.js:37:22)
    at async findUser (/srv/releases/20240101/src/users.js:11:5)
    at async /srv/releases/20240101/src/server.js:113:8
    at Layer.handle [as handle_request] (/srv/releases/20240101/node_modules/express/lib/router/layer.js:99:5)`)},
	other: map[string]Error{
		"function": thrown("Error", "connect ECONNREFUSED 10.0.0.1:5432", `
    at Pool.release (/home/alice/app/src/db/pool.js:36:2)
    at async findUser (/home/alice/app/src/users.js:10:5)
    at async /home/alice/app/src/server.js:112:38`),
		"type": thrown("AbortError", "connect ECONNREFUSED 10.0.0.1:5432", `
    at Pool.acquire (/home/alice/app/src/db/pool.js:36:2)
    at async findUser (/home/alice/app/src/users.js:10:5)
    at async /home/alice/app/src/server.js:112:38`),
	},
}, {
	name: "node cause",
	base: thrown("Error", "cannot load", `
Error: cannot load
    at load (/app/load.js:1:2) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'id')
      at parseUser (/app/parse.js:3:4)
      at load (/app/load.js:1:2)
}`),
	same: map[string]Error{"wrapper": thrown("Error", "request failed", `
    at handle (/app/handle.js:7:2) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'name')
      at parseUser (/app/parse.js:5:4)`)},
	other: map[string]Error{"cause": thrown("Error", "cannot load", `
    at load (/app/load.js:1:2) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'id')
      at parseOrder (/app/parse.js:3:4)`)},
}, {
	name: "bundles",
	base: thrown("TypeError", "e is undefined", `
TypeError: e is undefined
    at renderCart (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:64:25112)
    at t (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:1:112)
    at HTMLButtonElement.<anonymous> (https://cdn.acme.com/assets/index-DkYxQw9z.js:1:1)`),
	same: map[string]Error{
		"hashes and hosts": thrown("TypeError", "e is undefined", `
    at renderCart (https://eu.acme.net/static/js/main.99aa00bb.chunk.js?v=2:65:99)
    at n (https://eu.acme.net/static/js/main.99aa00bb.chunk.js:1:113)
    at HTMLButtonElement.<anonymous> (https://eu.acme.net/assets/index-PPqq11zz.js:1:1)`),
		"firefox": thrown("TypeError", "e is undefined", `
renderCart@https://eu.acme.net/static/js/main.99aa00bb.chunk.js?v=2:65:99
t@https://eu.acme.net/static/js/main.99aa00bb.chunk.js:1:113`),
	},
	other: map[string]Error{"function": thrown("TypeError", "e is undefined", `
    at renderList (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:64:25112)
    at t (https://cdn.acme.com/static/js/main.3f2a1b9c.chunk.js?v=1:1:112)`)},
}, {
	name: "firefox",
	base: thrown("InternalError", "cannot find the node", `
foo/<@http://a.example/path/to/file.js?x=1:41:13
async*bar@http://a.example/path/to/file.js line 26 > eval:1:30
http://a.example/path/to/other.js:5:1`),
	same: map[string]Error{"lines, hosts": thrown("InternalError", "cannot find the node", `
foo/<@https://b.example/v2/file.js:44:1
bar@https://b.example/v2/file.js line 27 > eval:1:30
https://b.example/v2/other.js:6:1`)},
	other: map[string]Error{"function": thrown("InternalError", "cannot find the node", `
baz/<@http://a.example/path/to/file.js?x=1:41:13
async*bar@http://a.example/path/to/file.js line 26 > eval:1:30
http://a.example/path/to/other.js:5:1`)},
}, {
	name: "safari",
	base: thrown("Error", "wrong state", `
change@http://a.example/app.js:3:9
forEach@[native code]
global code@http://a.example/app.js:48:22`),
	same: map[string]Error{"lines": thrown("Error", "wrong state", `
change@http://a.example/app.js:4:19
forEach@[native code]
global code@http://a.example/app.js:50:2`)},
	other: map[string]Error{"function": thrown("Error", "wrong state", `
close@http://a.example/app.js:3:9
forEach@[native code]
global code@http://a.example/app.js:48:22`)},
}}

var pythonKin = []kin{{
	name: "python",
	base: thrown("ValueError", "invalid literal for int() with base 10: 'abc'", `
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 975, in run
    self._target()
  File "/home/alice/app/orders/views.py", line 12, in create
    total = parse(x)
            ^^^^^^^^
  File "/home/alice/app/orders/money.py", line 40, in parse
    return int(x)
ValueError: invalid literal for int() with base 10: 'abc'`),
	same: map[string]Error{
		"lines, paths, values": thrown("ValueError", "invalid literal for int() with base 10: 'xyz'", `
  File "/usr/lib/python3.12/threading.py", line 1000, in run
  File "C:\srv\app\orders\views.py", line 14, in create
    total = parse(x)
  File "C:\srv\app\orders\money.py", line 41, in parse`),
	},
	other: map[string]Error{
		"function": thrown("ValueError", "invalid literal for int() with base 10: 'abc'", `
  File "/home/alice/app/orders/views.py", line 12, in create
  File "/home/alice/app/orders/money.py", line 40, in parse_all`),
		"type": thrown("OverflowError", "invalid literal for int() with base 10: 'abc'", `
  File "/home/alice/app/orders/views.py", line 12, in create
  File "/home/alice/app/orders/money.py", line 40, in parse`),
		"caller": thrown("ValueError", "invalid literal for int() with base 10: 'abc'", `
  File "/home/alice/app/orders/views.py", line 12, in update
  File "/home/alice/app/orders/money.py", line 40, in parse`),
	},
}, {
	name: "python chain",
	base: thrown("app.NotFound", "no user 7", `
Traceback (most recent call last):
  File "/app/users.py", line 5, in load
    return users[key]
KeyError: 7

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/main.py", line 10, in main
    load(7)
app.NotFound: no user 7`),
	same: map[string]Error{"key and wrapper": thrown("app.Gone", "no user 8", `
Traceback (most recent call last):
  File "/srv/users.py", line 6, in load
KeyError: 8

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/web.py", line 99, in show
app.Gone: no user 8`)},
	other: map[string]Error{"cause": thrown("app.NotFound", "no user 7", `
Traceback (most recent call last):
  File "/app/users.py", line 5, in save
KeyError: 7

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/main.py", line 10, in main
app.NotFound: no user 7`)},
}}

var goKin = []kin{{
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

var rubyKin = []kin{{
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

var phpKin = []kin{{
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

var dotnetKin = []kin{{
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

var otherKin = []kin{{
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
	name: "names in messages beside a trace",
	base: thrown("NotFound", "user alice not found in tenant acme (request 7f3a9c21)", `
  File "/app/users.py", line 5, in load`),
	same: map[string]Error{"names and ids": thrown("NotFound", "user bob not found in tenant globex (request 11aa22bb)", `
  File "/app/users.py", line 6, in load`)},
	other: map[string]Error{"words": thrown("NotFound", "cannot connect to database", `
  File "/app/users.py", line 5, in load`)},
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
