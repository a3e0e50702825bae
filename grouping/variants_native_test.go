package grouping

var nativeVariants = []variants{{
	name: "a memory fault",
	base: thrown("", "", `
==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000010 (pc 0x4f8c5d bp 0x7ffc sp 0x7ffd T0)
    #0 0x4f8c5d in shop::Cart::total() /src/cart.cpp:54:3
    #1 0x4f8d0a in shop::Cart::pay(int) /src/pay.cpp:12:9`),
	same: map[string]Error{
		"as an overflow": thrown("", "", `
==9==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000018 at pc 0x4e1b2c bp 0x7ffc sp 0x7ffd
    #0 0x4f8c5d in shop::Cart::total() /src/cart.cpp:55:3
    #1 0x4f8d0a in shop::Cart::renew() /src/renew.cpp:12:9`),
		"after free": thrown("heap-use-after-free", "", `
    #0 0x4f8c5d in shop::Cart::total() /src/cart.cpp:55:3`),
		"in a debugger": thrown("SIGSEGV", "Segmentation fault", `
#0  0x00005555 in shop::Cart::total (this=0x10) at cart.cpp:54
#1  0x00005556 in main () at main.cpp:5`),
	},
	other: map[string]Error{"an exception": thrown("std::out_of_range", "vector::_M_range_check", `
    #0 0x4f8c5d in shop::Cart::total() /src/cart.cpp:54:3`)},
}, {
	name: "sanitizer",
	base: thrown("heap-use-after-free", "", `
==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x0000004f8c5e
READ of size 4 at 0x602000000010 thread T0
    #0 0x4f8c5d in shop::(anonymous namespace)::total(std::vector<int, std::allocator<int> > const&) /src/cart.cpp:54:3
    #1 0x4f8d0a in shop::Cart<int>::pay(int) /src/pay.cpp:12:9
    #2 0x4f9000 in main /src/main.cpp:5:1
    #3 0x7f1b2c in __libc_start_main (/lib/x86_64-linux-gnu/libc.so.6+0x20830)
    #4 0x41c2b9  (/out/shop+0x1f1b3ac)
freed by thread T0 here:
    #0 0x4c2f80 in free (/out/shop+0x4c2f80)`),
	same: map[string]Error{"addresses, lines, types, arguments": thrown("heap-use-after-free", "", `
==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000aa0010 at pc 0x0000004f0000
    #0 0x5f8c5d in shop::(anonymous namespace)::total(std::vector<long> const&) /build/cart.cpp:55:3
    #1 0x5f8d0a in shop::Cart<long>::pay(long) [clone .isra.0] /build/pay.cpp:13:9
    #2 0x5f9000 in main /build/main.cpp:6:1`),
		"a debugger": thrown("heap-use-after-free", "", `
#0  shop::(anonymous namespace)::total (items=...) at cart.cpp:54
#1  0x00005555 in shop::Cart<int>::pay (n=1) at pay.cpp:12
#2  0x00005556 in main () at main.cpp:5`)},
	other: map[string]Error{"function": thrown("heap-use-after-free", "", `
    #0 0x4f8c5d in shop::(anonymous namespace)::count(std::vector<int> const&) /src/cart.cpp:54:3
    #1 0x4f8d0a in shop::Cart<int>::pay(int) /src/pay.cpp:12:9
    #2 0x4f9000 in main /src/main.cpp:5:1`)},
}, {
	name: "glibc",
	base: thrown("SIGABRT", "", `
/lib/x86_64-linux-gnu/libc.so.6(abort+0x12b)[0x7f0000]
./shop(_ZN4Cart5totalEv+0x15)[0x400e15]
./shop(main+0x22)[0x400f22]
/lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0xf0)[0x7f0001]
./shop() [0x400999]`),
	same: map[string]Error{"addresses": thrown("SIGABRT", "", `
/usr/lib/libc.so.6(abort+0x1ff)[0x7e0000]
/opt/shop(_ZN4Cart5totalEv+0x25) [0x500e15]
/opt/shop(main+0x23) [0x500f22]`)},
	other: map[string]Error{"function": thrown("SIGABRT", "", `
./shop(_ZN4Cart5countEv+0x15)[0x400e15]
./shop(main+0x22)[0x400f22]`)},
}, {
	name: "swift",
	base: thrown("EXC_BREAKPOINT", "Unexpectedly found nil", `
0   libswiftCore.dylib   0x00000001a0b1c2d3 _assertionFailure(_:_:file:line:flags:) + 308
1   Shop                 0x0000000104a51234 closure #1 in Cart.total() + 84 (Cart.swift:12)
2   Shop                 0x0000000104a51299 specialized Cart.pay(_:) + 12
3   Shop                 0x0000000104a52000 __23-[ShopView tap:]_block_invoke_2 + 4
4   UIKitCore            0x00000001b0000000 -[UIApplication sendAction:] + 96`),
	same: map[string]Error{"addresses, counters": thrown("EXC_BREAKPOINT", "Unexpectedly found nil", `
0   libswiftCore.dylib   0x00000001ffb1c2d3 _assertionFailure(_:_:file:line:flags:) + 300
1   Shop                 0x0000000204a51234 closure #2 in Cart.total() + 88 (Cart.swift:13)
2   Shop                 0x0000000204a51299 Cart.pay(_:) + 16
3   Shop                 0x0000000204a52000 __25-[ShopView tap:]_block_invoke + 8`)},
	other: map[string]Error{"function": thrown("EXC_BREAKPOINT", "Unexpectedly found nil", `
1   Shop                 0x0000000104a51234 closure #1 in Cart.count() + 84 (Cart.swift:12)
2   Shop                 0x0000000104a51299 Cart.pay(_:) + 12`)},
}, {
	name: "android",
	base: thrown("SIGSEGV", "", `
      #00 pc 0004a1b2  /system/lib/libc.so (abort+63)
      #01 pc 0000aaaa  /data/app/com.acme-1/lib/arm/libshop.so (Cart::total(int)+12)
      #02 pc 0000bbbb  /data/app/com.acme-1/lib/arm/libshop.so (Cart::pay()+40) (BuildId: 8f3a9c)`),
	same: map[string]Error{"addresses": thrown("SIGSEGV", "", `
      #00 pc 0004ffff  /apex/lib/libc.so (abort+99)
      #01 pc 0000cccc  /data/app/com.acme-2/lib/arm64/libshop.so (Cart::total(int)+16) (BuildId: 11)
      #02 pc 0000dddd  /data/app/com.acme-2/lib/arm64/libshop.so (Cart::pay()+44)`)},
	other: map[string]Error{"function": thrown("SIGSEGV", "", `
      #01 pc 0000aaaa  /data/app/com.acme-1/lib/arm/libshop.so (Cart::count(int)+12)`)},
}}

var dartVariants = []variants{{
	name: "dart",
	base: thrown("StateError", "Bad state: no element", `
#0      Iterable.first (dart:core/iterable.dart:663:7)
#1      Cart.total.<anonymous closure> (package:shop/cart.dart:12:5)
<asynchronous suspension>
#2      Cart.pay (package:shop/cart.dart:30:3)
#3      State.setState (package:flutter/src/widgets/framework.dart:1:1)
#4      main (file:///app/bin/main.dart:5:3)`),
	same: map[string]Error{
		"lines": thrown("StateError", "Bad state: no element", `
#0      Iterable.first (dart:core/iterable.dart:700:7)
#1      Cart.total (package:shop/cart.dart:13:5)
#2      Cart.pay (package:shop/cart.dart:31:3)
#3      main (file:///srv/bin/main.dart:6:3)`),
		"the web": thrown("StateError", "Bad state: no element", `
dart:core/iterable.dart 663:7      first
package:shop/cart.dart 12:5        Cart.total.<fn>
package:shop/cart.dart 30:3        Cart.pay
file:///app/bin/main.dart 5:3      main`),
	},
	other: map[string]Error{"function": thrown("StateError", "Bad state: no element", `
#1      Cart.count (package:shop/cart.dart:12:5)
#2      Cart.pay (package:shop/cart.dart:30:3)`)},
}}

var beamVariants = []variants{{
	name: "elixir",
	base: thrown("RuntimeError", "no such cart", `
** (RuntimeError) no such cart
    (elixir 1.12.0) lib/enum.ex:1582: Enum."-map/2-lists^map/1-0-"/2
    (shop 0.1.0) lib/shop/cart.ex:12: anonymous fn/1 in Shop.Cart.total/2
    (shop 0.1.0) lib/shop/pay.ex:7: Shop.Pay.charge/1
    (phoenix 1.6.0) lib/phoenix/router.ex:352: Phoenix.Router.__call__/2
    (stdlib 3.17) gen_server.erl:695: :gen_server.try_dispatch/4`),
	same: map[string]Error{"versions, lines, arguments": thrown("RuntimeError", "no such cart", `
    (elixir 1.15.0) lib/enum.ex:1600: Enum."-map/2-lists^map/1-0-"/2
    (shop 0.2.0) lib/shop/cart.ex:14: Shop.Cart.total(%{id: 7}, 2)
    (shop 0.2.0) lib/shop/pay.ex:8: Shop.Pay.charge/1`)},
	other: map[string]Error{"function": thrown("RuntimeError", "no such cart", `
    (shop 0.1.0) lib/shop/cart.ex:12: Shop.Cart.count/2
    (shop 0.1.0) lib/shop/pay.ex:7: Shop.Pay.charge/1`)},
}, {
	name: "erlang",
	base: thrown("badarg", "", `
[{cart,total,2,[{file,"src/cart.erl"},{line,12}]},
 {pay,charge,[<<"7">>,{a,1}],[{file,"src/pay.erl"},{line,7}]},
 {proc_lib,init_p_do_apply,3,[{file,"proc_lib.erl"},{line,226}]}]`),
	same: map[string]Error{"lines, arguments": thrown("badarg", "", `
[{cart,total,[1,2],[{file,"src/cart.erl"},{line,13}]},
 {pay,charge,1,[{file,"src/pay.erl"},{line,8}]},
 {proc_lib,init_p_do_apply,3,[{file,"proc_lib.erl"},{line,240}]}]`)},
	other: map[string]Error{"function": thrown("badarg", "", `
[{cart,count,2,[{file,"src/cart.erl"},{line,12}]},
 {pay,charge,1,[{file,"src/pay.erl"},{line,7}]}]`)},
}}

var javaVariants = []variants{{
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
	other: map[string]Error{"another cycle": thrown("java.lang.StackOverflowError", "", `
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
