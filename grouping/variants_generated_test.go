package grouping

import "strings"

// What builds, browsers, runtimes and generators change between occurrences.
var generatedVariants = []variants{{
	name: "builds of one bundle",
	base: thrown("Error", "no such cart", `
    at renderCart (https://cdn.acme.com/assets/index-BqR3_x9k.js:64:25112)
    at openCart (https://cdn.acme.com/assets/index-BqR3_x9k.js:1:112)`),
	same: map[string]Error{
		"a hash with a dash": thrown("Error", "no such cart", `
    at renderCart (https://cdn.acme.com/assets/index-Bq-3_x9k.js:64:25112)
    at openCart (https://cdn.acme.com/assets/index-Bq-3_x9k.js:1:112)`),
		"a hash of letters": thrown("Error", "no such cart", `
    at renderCart (https://cdn.acme.com/assets/index-DkYxQwZs.js:64:25112)
    at openCart (https://cdn.acme.com/assets/index-DkYxQwZs.js:1:112)`),
		"a hash of small letters and digits": thrown("Error", "no such cart", `
    at renderCart (https://cdn.acme.com/assets/index-a8d_kf3x.js:64:25112)
    at openCart (https://cdn.acme.com/assets/index-a8d_kf3x.js:1:112)`),
	},
	other: map[string]Error{"another script": thrown("Error", "no such cart", `
    at renderCart (https://cdn.acme.com/assets/checkout-BqR3_x9k.js:64:25112)
    at openCart (https://cdn.acme.com/assets/checkout-BqR3_x9k.js:1:112)`),
		"a name of words": thrown("Error", "no such cart", `
    at renderCart (https://cdn.acme.com/assets/index-checkout.js:64:25112)
    at openCart (https://cdn.acme.com/assets/index-checkout.js:1:112)`)},
}, {
	name: "browsers",
	base: thrown("TypeError", "Cannot read properties of undefined (reading 'price')", `
TypeError: Cannot read properties of undefined (reading 'price')
    at Cart.total (https://shop.example/app.js:41:13)
    at https://shop.example/app.js:50:9
    at Array.forEach (<anonymous>)
    at new Page (https://shop.example/app.js:60:1)
    at async Shop.open (https://shop.example/app.js:70:1)`),
	same: map[string]Error{
		"firefox": thrown("TypeError", `can't access property "price", item is undefined`, `
total@https://shop.example/app.js:41:13
place/<@https://shop.example/app.js:50:9
Page@https://shop.example/app.js:60:1
async*open@https://shop.example/app.js:70:1`),
		"safari": thrown("TypeError", "undefined is not an object (evaluating 'item.price')", `
total@https://shop.example/app.js:41:20
@https://shop.example/app.js:50:9
forEach@[native code]
Page@https://shop.example/app.js:60:1
global code@https://shop.example/app.js:90:1`),
	},
	other: map[string]Error{"another function": thrown("TypeError", "Cannot read properties of undefined (reading 'price')", `
    at Cart.count (https://shop.example/app.js:41:13)`)},
}, {
	name: "browsers, a message of one's own",
	base: thrown("Error", "cart is closed", `
    at Cart.add (https://shop.example/app.js:41:13)
    at HTMLButtonElement.<anonymous> (https://shop.example/app.js:50:9)
    at Page.click (https://shop.example/app.js:60:1)`),
	same: map[string]Error{"firefox": thrown("Error", "cart is closed", `
add@https://shop.example/app.js:41:13
setup/<@https://shop.example/app.js:50:9
click@https://shop.example/app.js:60:1`)},
	other: map[string]Error{"another message": thrown("Error", "cart is full", `
    at Cart.add (https://shop.example/app.js:41:13)
    at Page.click (https://shop.example/app.js:60:1)`)},
}, {
	name: "classes that were generated",
	base: thrown("com.acme.Stale", "row was updated", `
	at com.acme.Order$HibernateProxy$Gy7Zx1aB.save(Unknown Source)
	at org.apache.spark.sql.GeneratedClass$GeneratedIteratorForCodegenStage3.next(generated.java:1)
	at com.acme.Report$_run_closure2.doCall(Report.groovy:5)
	at com.acme.ComposableSingletons$MainKt$lambda-3$1.invoke(Main.kt:9)
	at jdk.proxy2.$Proxy12.save(Unknown Source)
	at com.acme.Main.main(Main.java:1)`),
	same: map[string]Error{"other numbers": thrown("com.acme.Stale", "row was updated", `
	at com.acme.Order$HibernateProxy$Kk8Pq2cD.save(Unknown Source)
	at org.apache.spark.sql.GeneratedClass$GeneratedIteratorForCodegenStage14.next(generated.java:1)
	at com.acme.Report$_run_closure5.doCall(Report.groovy:5)
	at com.acme.ComposableSingletons$MainKt$lambda-7$1.invoke(Main.kt:9)
	at jdk.proxy3.$Proxy99.save(Unknown Source)
	at com.acme.Main.main(Main.java:1)`)},
}, {
	name: "notebooks",
	base: thrown("ValueError", "no such column", `
  File "/tmp/ipykernel_1/99.py", line 1, in <module>
  File "<command-1234>", line 2, in show
  File "/app/a.py", line 3, in <listcomp>
  File "/app/a.py", line 3, in load`),
	same: map[string]Error{"another cell, a newer Python": thrown("ValueError", "no such column", `
  File "/tmp/ipykernel_20/4711.py", line 1, in <module>
  File "<command-99>", line 2, in show
  File "/app/a.py", line 3, in load`)},
}, {
	name: "panics with a message in quotes",
	base: thrown("", "", `
thread 'main' panicked at 'cart is closed, sorry', src/cart.rs:4:5
stack backtrace:
   0: rust_begin_unwind
   2: shop::cart::total
   3: shop::main`),
	same: map[string]Error{"another thread and line": thrown("", "", `
thread 'worker-7' panicked at 'cart is closed, sorry', src/cart.rs:9:5
   2: shop::cart::total
   3: shop::main`)},
	other: map[string]Error{"another message": thrown("", "", `
thread 'main' panicked at 'no such item', src/cart.rs:4:5
   2: shop::cart::total
   3: shop::main`)},
}, {
	name:  "lambdas that wait",
	base:  thrown("Acme.Failed", "no", "   at Shop.Web.<>c.<<Main>b__0_0>d.MoveNext() in /src/Web.cs:line 5\n   at Shop.Host.Run()"),
	same:  map[string]Error{"counters": thrown("Acme.Failed", "no", "   at Shop.Web.<>c.<<Main>b__3_1>d.MoveNext()\n   at Shop.Host.Run()")},
	other: map[string]Error{"another method": thrown("Acme.Failed", "no", "   at Shop.Web.<>c.<<Stop>b__0_0>d.MoveNext()\n   at Shop.Host.Run()")},
}, {
	name:  "rust closures",
	base:  thrown("panic", "no such key", "   4: shop::cart::total::{closure#1}\n   5: shop::main"),
	same:  map[string]Error{"counters": thrown("panic", "no such key", "   2: shop::cart::total::{closure#2}\n   3: shop::main")},
	other: map[string]Error{"function": thrown("panic", "no such key", "   2: shop::cart::count::{closure#1}\n   3: shop::main")},
}}

// Chains of errors and their root causes.
var chainVariants = []variants{{
	name: "an exception group",
	base: thrown("ExceptionGroup", "many (2 sub-exceptions)", `
  + Exception Group Traceback (most recent call last):
  |   File "/app/main.py", line 10, in main
  |     raise ExceptionGroup("many", errs)
  | ExceptionGroup: many (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/app/a.py", line 3, in load
    |     return rows[0]
    | IndexError: list index out of range
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/app/b.py", line 3, in save
    | KeyError: 'b'
    +------------------------------------`),
	same: map[string]Error{"found elsewhere": thrown("IndexError", "list index out of range", `
Traceback (most recent call last):
  File "/app/a.py", line 4, in load
IndexError: list index out of range`)},
	other: map[string]Error{"another type within": thrown("ExceptionGroup", "many (2 sub-exceptions)", `
  + Exception Group Traceback (most recent call last):
  |   File "/app/main.py", line 10, in main
  | ExceptionGroup: many (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/app/a.py", line 3, in load
    | ZeroDivisionError: division by zero
    +------------------------------------`)},
}, {
	name: "the root cause first",
	base: thrown("com.acme.Failed", "request 12 failed", `
com.acme.NotFoundException: no such user
	at com.acme.db.Users.find(Users.java:88)
	at com.acme.db.Db.query(Db.java:12)
	at com.acme.web.Page.show(Page.java:3)
Wrapped by: com.acme.Failed: request 12 failed
	at com.acme.web.Filter.doFilter(Filter.java:20)`),
	same: map[string]Error{"the root cause last": thrown("com.acme.Failed", "request 13 failed", `
com.acme.Failed: request 13 failed
	at com.acme.web.Filter.doFilter(Filter.java:20)
Caused by: com.acme.NotFoundException: no such user
	at com.acme.db.Users.find(Users.java:88)
	at com.acme.db.Db.query(Db.java:12)
	at com.acme.web.Page.show(Page.java:3)`)},
}, {
	name: "causes in Ruby",
	base: thrown("RuntimeError", "request failed", "/app/web.rb:1:in `rescue in show': request failed (RuntimeError)\n"+
		"\tfrom /app/web.rb:9:in `call'\n/app/users.rb:3:in `lookup': key not found: 7 (KeyError)\n\tfrom /app/web.rb:2:in `show'"),
	same:  map[string]Error{"elsewhere": thrown("KeyError", "key not found: 8", "/app/users.rb:4:in `lookup'\n/app/web.rb:3:in `show'")},
	other: map[string]Error{"another cause": thrown("RuntimeError", "request failed", "/app/web.rb:1:in `rescue in show': request failed (RuntimeError)\n\tfrom /app/web.rb:9:in `call'")},
}, {
	name: "German .NET",
	base: thrown("Acme.Failed", "no", `
Acme.Failed: no
 ---> System.NullReferenceException: Der Objektverweis wurde nicht auf eine Objektinstanz festgelegt.
   bei Acme.Db.Query(String sql) in C:\src\Db.cs:Zeile 3.
   --- Ende der internen Ausnahmestapelüberwachung ---
   bei Acme.Web.Handle(Request r) in C:\src\Web.cs:Zeile 9.`),
	same: map[string]Error{"English": thrown("Acme.Failed", "no", `
Acme.Failed: no
 ---> System.NullReferenceException: Object reference not set to an instance of an object.
   at Acme.Db.Query(String sql) in /src/Db.cs:line 4
   --- End of inner exception stack trace ---
   at Acme.Job.Run() in /src/Job.cs:line 9`)},
}, {
	name: "stack overflow in Go",
	base: thrown("", "", `
runtime: goroutine stack exceeds 1000000000-byte limit
fatal error: stack overflow

runtime stack:
runtime.throw({0x1?, 0x2?})
	/usr/local/go/src/runtime/panic.go:1077 +0x5c
runtime.newstack()
	/usr/local/go/src/runtime/stack.go:1107 +0x5bd

goroutine 1 [running]:
main.walk(0x1)
	/app/main.go:5 +0x1
main.visit(0x1)
	/app/main.go:6 +0x1
main.walk(0x1)
	/app/main.go:5 +0x1
main.main()
	/app/main.go:9 +0x1`),
	other: map[string]Error{"another cycle": thrown("", "", `
fatal error: stack overflow

runtime stack:
runtime.throw({0x1?, 0x2?})
	/usr/local/go/src/runtime/panic.go:1077 +0x5c

goroutine 1 [running]:
main.count(0x1)
	/app/main.go:5 +0x1
main.count(0x1)
	/app/main.go:5 +0x1
main.main()
	/app/main.go:9 +0x1`)},
}, {
	name: "syntax errors",
	base: thrown("SyntaxError", "invalid syntax", `
Traceback (most recent call last):
  File "/usr/lib/python3.11/importlib/__init__.py", line 126, in import_module
  File "/app/cart.py", line 3
    def f(
         ^
SyntaxError: invalid syntax`),
	other: map[string]Error{"another file": thrown("SyntaxError", "invalid syntax", `
Traceback (most recent call last):
  File "/usr/lib/python3.11/importlib/__init__.py", line 126, in import_module
  File "/app/list.py", line 3
SyntaxError: invalid syntax`)},
}}

// Which frames locate an error.
var depthVariants = []variants{{
	name: "callers beyond the frames that count",
	base: thrown("com.acme.Declined", "card was declined", `
	at com.acme.pay.Gateway.charge(Gateway.java:1)
	at com.acme.pay.Payments.pay(Payments.java:1)
	at com.acme.pay.Orders.pay(Orders.java:1)
	at com.acme.pay.Orders.close(Orders.java:1)
	at com.acme.web.Checkout.post(Checkout.java:1)`),
	same: map[string]Error{"called from elsewhere": thrown("com.acme.Declined", "card was declined", `
	at com.acme.pay.Gateway.charge(Gateway.java:1)
	at com.acme.pay.Payments.pay(Payments.java:1)
	at com.acme.pay.Orders.pay(Orders.java:1)
	at com.acme.pay.Orders.close(Orders.java:1)
	at com.acme.job.Renewal.run(Renewal.java:1)
	at com.acme.job.Main.main(Main.java:1)`)},
	other: map[string]Error{"another fourth caller": thrown("com.acme.Declined", "card was declined", `
	at com.acme.pay.Gateway.charge(Gateway.java:1)
	at com.acme.pay.Payments.pay(Payments.java:1)
	at com.acme.pay.Orders.pay(Orders.java:1)
	at com.acme.pay.Orders.renew(Orders.java:1)
	at com.acme.web.Checkout.post(Checkout.java:1)`)},
}, {
	name: "a lookup is no fault",
	base: thrown("KeyError", "'id'", `
  File "/app/web.py", line 5, in show
  File "/app/lookup.py", line 3, in find`),
	other: map[string]Error{"another caller": thrown("KeyError", "'name'", `
  File "/app/job.py", line 5, in run
  File "/app/lookup.py", line 3, in find`)},
}, {
	name: "packages that no list knows",
	base: thrown("Acme\\Declined", "card was declined", `
#0 /var/www/vendor/globex/pay/src/Client.php(12): Globex\Pay\Http->send('x')
#1 /var/www/app/Shop.php(33): Globex\Pay\Client->charge(100)
#2 /var/www/vendor/globex/queue/Worker.php(7): App\Shop->checkout()
#3 /var/www/app/Job.php(9): Globex\Queue\Worker->run()
#4 {main}`),
	same: map[string]Error{"another release of the package": thrown("Acme\\Declined", "card was declined", `
#0 /srv/vendor/globex/pay/src/Net/Client.php(99): Globex\Pay\Net\Socket->write('x')
#1 /srv/app/Shop.php(34): Globex\Pay\Net\Client->charge(100)
#2 /srv/vendor/globex/queue/Worker.php(8): App\Shop->checkout()
#3 /srv/app/Job.php(10): Globex\Queue\Worker->run()
#4 {main}`)},
	other: map[string]Error{"one's own function": thrown("Acme\\Declined", "card was declined", `
#0 /var/www/vendor/globex/pay/src/Client.php(12): Globex\Pay\Http->send('x')
#1 /var/www/app/Shop.php(33): Globex\Pay\Client->charge(100)
#2 /var/www/vendor/globex/queue/Worker.php(7): App\Shop->renew()
#3 /var/www/app/Job.php(9): Globex\Queue\Worker->run()
#4 {main}`)},
}, {
	name: "nothing of one's own",
	base: thrown("java.lang.NullPointerException", "", `
	at org.springframework.web.Filter.match(Filter.java:1)
	at org.springframework.web.Chain.proceed(Chain.java:1)
	at org.springframework.web.Chain.begin(Chain.java:1)
	at org.springframework.web.Servlet.service(Servlet.java:1)
	at org.apache.catalina.core.Valve.invoke(Valve.java:1)
	at java.lang.Thread.run(Thread.java:1)`),
	same: map[string]Error{"another server": thrown("java.lang.NullPointerException", "", `
	at org.springframework.web.Filter.match(Filter.java:1)
	at org.springframework.web.Chain.proceed(Chain.java:1)
	at org.springframework.web.Chain.begin(Chain.java:1)
	at org.springframework.web.Servlet.service(Servlet.java:1)
	at org.eclipse.jetty.Server.handle(Server.java:1)
	at java.lang.Thread.run(Thread.java:1)`)},
}, {
	name: "a trace behind a log",
	base: thrown("com.acme.Declined", "card was declined", strings.Repeat("12:30:45 INFO cart opened\n", 100)+`
	at com.acme.pay.Gateway.charge(Gateway.java:1)`),
	same: map[string]Error{"alone": thrown("com.acme.Declined", "card was declined", `
	at com.acme.pay.Gateway.charge(Gateway.java:2)`)},
}}
