package grouping

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
