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
