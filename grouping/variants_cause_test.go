package grouping

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
}, {
	name: "a fault in a call of a library",
	base: thrown("java.lang.NullPointerException", "", `
	at java.base/java.util.Hashtable.put(Hashtable.java:475)
	at com.acme.order.Settings.copy(Settings.java:14)`),
	same: map[string]Error{"another release of the library": thrown("java.lang.NullPointerException", "", `
	at java.base/java.util.Objects.requireNonNull(Objects.java:208)
	at java.base/java.util.Hashtable.put(Hashtable.java:481)
	at com.acme.order.Settings.copy(Settings.java:15)`)},
	other: map[string]Error{
		"in another call": thrown("java.lang.NullPointerException", "", `
	at java.base/java.util.Hashtable.get(Hashtable.java:311)
	at com.acme.order.Settings.copy(Settings.java:15)`),
		"in none": thrown("java.lang.NullPointerException", "", `
	at com.acme.order.Settings.copy(Settings.java:15)`),
	},
}, {
	name: "half of the way to the entry point",
	base: thrown("com.acme.Refused", "connection refused", `
	at com.acme.db.Pool.connect(Pool.java:9)
	at com.acme.db.Pool.take(Pool.java:5)
	at com.acme.db.Query.first(Query.java:7)
	at com.acme.web.Cart.show(Cart.java:3)
	at com.acme.web.Router.route(Router.java:2)
	at com.acme.web.Main.main(Main.java:1)`),
	same: map[string]Error{"another page": thrown("com.acme.Refused", "connection refused", `
	at com.acme.db.Pool.connect(Pool.java:9)
	at com.acme.db.Pool.take(Pool.java:5)
	at com.acme.db.Query.first(Query.java:7)
	at com.acme.web.Login.show(Login.java:3)
	at com.acme.web.Router.route(Router.java:2)
	at com.acme.web.Main.main(Main.java:1)`)},
	other: map[string]Error{"another query": thrown("com.acme.Refused", "connection refused", `
	at com.acme.db.Pool.connect(Pool.java:9)
	at com.acme.db.Pool.take(Pool.java:5)
	at com.acme.db.Query.all(Query.java:7)
	at com.acme.web.Cart.show(Cart.java:3)
	at com.acme.web.Router.route(Router.java:2)
	at com.acme.web.Main.main(Main.java:1)`)},
}}
