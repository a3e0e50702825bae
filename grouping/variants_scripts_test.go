package grouping

// Languages of scripts and of science.
var scriptVariants = []variants{{
	name: "powershell",
	base: thrown("ItemNotFoundException", "Cannot find path", `
at Get-Cart<Process>, C:\shop\cart.ps1: line 12
at Open-Shop, C:\shop\shop.ps1: line 40
at <ScriptBlock>, <No file>: line 1`),
	same: map[string]Error{"lines, paths": thrown("ItemNotFoundException", "Cannot find path", `
at Get-Cart, /srv/shop/cart.ps1: line 13
at Open-Shop, /srv/shop/shop.ps1: line 41`)},
	other: map[string]Error{"function": thrown("ItemNotFoundException", "Cannot find path", `
at Set-Cart, C:\shop\cart.ps1: line 12
at Open-Shop, C:\shop\shop.ps1: line 40`)},
}, {
	name: "perl",
	base: thrown("", "", `
no such cart at /app/lib/Shop/Cart.pm line 12.
	Shop::Cart::total(Shop::Cart=HASH(0x55d0c8), 7) called at /app/lib/Shop/Pay.pm line 30
	eval {...} called at /app/lib/Shop/Pay.pm line 29
	Shop::Pay::charge("x") called at /app/shop.pl line 3`),
	same: map[string]Error{"lines, paths, addresses": thrown("", "", `
no such cart at /srv/lib/Shop/Cart.pm line 13.
	Shop::Cart::total(Shop::Cart=HASH(0x66d0c8), 8) called at /srv/lib/Shop/Pay.pm line 31
	Shop::Pay::charge("y") called at /srv/shop.pl line 4`)},
	other: map[string]Error{"function": thrown("", "", `
no such cart at /app/lib/Shop/Cart.pm line 12.
	Shop::Cart::count(Shop::Cart=HASH(0x55d0c8), 7) called at /app/lib/Shop/Pay.pm line 30
	Shop::Pay::charge("x") called at /app/shop.pl line 3`)},
}, {
	name: "lua",
	base: thrown("", "", `
lua: /app/cart.lua:12: no such cart
stack traceback:
	[C]: in function 'error'
	/app/cart.lua:12: in function 'total'
	/app/pay.lua:30: in function <...pay.lua:28>
	/app/shop.lua:3: in main chunk
	[C]: in ?`),
	same: map[string]Error{"lines, paths, how it was called": thrown("", "", `
lua: /srv/cart.lua:13: no such cart
stack traceback:
	/srv/cart.lua:13: in upvalue 'total'
	/srv/pay.lua:31: in function <...pay.lua:29>
	/srv/shop.lua:4: in main chunk`)},
	other: map[string]Error{"function": thrown("", "", `
lua: /app/cart.lua:12: no such cart
stack traceback:
	/app/cart.lua:12: in function 'count'
	/app/pay.lua:30: in function <...pay.lua:28>
	/app/shop.lua:3: in main chunk`)},
}, {
	name: "julia",
	base: thrown("", "", `
ERROR: KeyError: key 7 not found
Stacktrace:
 [1] getindex(h::Dict{Int64, Int64}, key::Int64)
   @ Base ./dict.jl:498
 [2] total(cart::Cart)
   @ Shop /app/cart.jl:12
 [3] charge(n::Int64)
   @ Shop /app/pay.jl:3
 [4] top-level scope
   @ REPL[1]:1`),
	same: map[string]Error{"lines, types, an older release": thrown("", "", `
ERROR: KeyError: key 8 not found
Stacktrace:
 [1] getindex(::Dict{Int64,Float64}, ::Int64) at ./dict.jl:467
 [2] total(::Cart) at /srv/cart.jl:14
 [3] charge(::Int64) at /srv/pay.jl:4`)},
	other: map[string]Error{"function": thrown("", "", `
ERROR: KeyError: key 7 not found
Stacktrace:
 [2] count(cart::Cart)
   @ Shop /app/cart.jl:12
 [3] charge(n::Int64)
   @ Shop /app/pay.jl:3`)},
}, {
	name: "haskell",
	base: thrown("ErrorCall", "no such cart", `
shop: no such cart
CallStack (from HasCallStack):
  error, called at src/Cart.hs:12:3 in shop-0.1-Abc:Cart
  total, called at src/Pay.hs:30:5 in shop-0.1-Abc:Pay
  charge, called at app/Main.hs:3:1 in main:Main`),
	same: map[string]Error{"lines, versions": thrown("ErrorCall", "no such cart", `
CallStack (from HasCallStack):
  error, called at src/Cart.hs:13:3 in shop-0.2-Xyz:Cart
  total, called at src/Pay.hs:31:5 in shop-0.2-Xyz:Pay
  charge, called at app/Main.hs:4:1 in main:Main`)},
	other: map[string]Error{"function": thrown("ErrorCall", "no such cart", `
CallStack (from HasCallStack):
  error, called at src/Cart.hs:12:3 in shop-0.1-Abc:Cart
  count, called at src/Pay.hs:30:5 in shop-0.1-Abc:Pay
  charge, called at app/Main.hs:3:1 in main:Main`)},
}, {
	name: "r",
	base: thrown("", "", `
Error in total(cart) : no such cart
4: stop("no such cart") at cart.R#12
3: total(cart) at pay.R#30
2: charge(7) at shop.R#3
1: eval(ei, envir)`),
	same: map[string]Error{"lines, arguments": thrown("", "", `
Error in total(cart) : no such cart
4: stop("no such cart") at cart.R#13
3: total(basket) at pay.R#31
2: charge(8)
1: source("shop.R")`)},
	other: map[string]Error{"function": thrown("", "", `
Error in count(cart) : no such cart
4: stop("no such cart") at cart.R#12
3: count(cart) at pay.R#30
2: charge(7) at shop.R#3`)},
}}

var pythonVariants = []variants{{
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

var javascriptVariants = []variants{{
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
foo@http://a.example/path/to/file.js?x=1:41:13
place/<@http://a.example/path/to/file.js?x=1:43:13
async*bar@http://a.example/path/to/file.js line 26 > eval:1:30
http://a.example/path/to/other.js:5:1`),
	same: map[string]Error{"lines, hosts": thrown("InternalError", "cannot find the node", `
foo@https://b.example/v2/file.js:44:1
async*bar@https://b.example/v2/file.js line 27 > eval:1:30
https://b.example/v2/other.js:6:1`)},
	other: map[string]Error{"function": thrown("InternalError", "cannot find the node", `
baz@http://a.example/path/to/file.js?x=1:41:13
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
