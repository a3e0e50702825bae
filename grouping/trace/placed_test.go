package trace

import "testing"

// A line with a function, a file and a line number
// is a call, in whatever order they are.
func TestPlacedFrames(t *testing.T) {
	for line, want := range map[string]Frame{
		"Cart.total (cart.pas:12)":                                                     {Function: "Cart.total", File: "cart.pas", Line: 12},
		"/app/src/cart.nim(12)    total":                                               {Function: "total", File: "/app/src/cart.nim", Line: 12},
		"  total at cart.cr:12:3":                                                      {Function: "total", File: "cart.cr", Line: 12},
		"  from src/shop/cart.cr:12:5 in 'total'":                                      {Function: "total", File: "src/shop/cart.cr", Line: 12},
		"in file cart.vb line 12 function Total":                                       {Function: "Total", File: "cart.vb", Line: 12},
		`Called from Shop__Cart.total in file "src/cart.ml", line 12, characters 5-20`: {Function: "Shop__Cart.total", File: "src/cart.ml", Line: 12},
		"  $00401234  TCART__TOTAL,  line 12 of cart.pas":                              {Function: "TCART__TOTAL", File: "cart.pas", Line: 12},
		"/app/src/cart.zig:12:17: 0x1037b4e in total (shop)":                           {Function: "total", File: "/app/src/cart.zig", Line: 12},
		"source/cart.d:12 int shop.cart.Cart.total(int) [0x55d1c2a3b4d5]":              {Function: "shop.cart.Cart.total", File: "source/cart.d", Line: 12},
		"  in sub total at /app/lib/Cart.rakumod (Cart) line 674":                      {Function: "total", File: "/app/lib/Cart.rakumod", Line: 674},
		"       [0] total (res://cart.gd:12)":                                          {Function: "total", File: "res://cart.gd", Line: 12},
		"   /home/alice/shop/cart.rkt:233:2: cart-total":                               {Function: "cart-total", File: "/home/alice/shop/cart.rkt", Line: 233},
		"total Cart.cls at line 147  (/home/alice/shop/Cart.r)":                        {Function: "total", File: "Cart.cls", Line: 147},
		"  Shop.Cart.total (src/Shop/Cart.hs:(12,1)-(14,20))":                          {Function: "Shop.Cart.total", File: "src/Shop/Cart.hs", Line: 12},
	} {
		var got Frame
		if ok := placedFrame(newLine(line), &got); !ok || got != want {
			t.Errorf("%q is %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{
		"", "no such cart", "cannot read the cart at cart.pas:12", "cart.pas:12", "see https://shop.example/cart.html", "version 1.12 of shop",
		"total (line 12)", "127.0.0.1:8080 total", "10:20:30.123 started", "Fatal error: exception Not_found", "wrote shop.log in 12 s",
	} {
		var f Frame
		if placedFrame(newLine(line), &f) {
			t.Errorf("%q is %+v", line, f)
		}
	}
}

// Errors of languages without a parser have a type, a message and
// calls, the innermost first, also where it is printed last.
func TestPlacedErrors(t *testing.T) {
	for _, c := range []struct{ trace, typ, message, innermost string }{
		{"Unhandled exception: cart is closed (Shop::Closed)\n  from src/cart.cr:12:5 in 'total'\n  from src/page.cr:20:3 in 'show'", "Shop::Closed", "cart is closed", "cart.cr:total"},
		{"/app/page.nim(12) show\n/app/cart.nim(7) total\n/usr/lib/nim/system/fatal.nim(54) sysFatal\nError: unhandled exception: index 5 not in 0 .. 2 [IndexDefect]", "IndexDefect", "index 5 not in 0 .. 2", "cart.nim:total"},
		{"Traceback (most recent call last)\n/app/page.nim(12) show\n/app/cart.nim(7) total\nError: unhandled exception: no such cart [ValueError]", "ValueError", "no such cart", "cart.nim:total"},
		{"Fatal error: exception Shop.Closed(\"cart 7\")\nRaised at Shop.total in file \"cart.ml\", line 12, characters 4-22\nCalled from Shop.show in file \"page.ml\", line 3, characters 2-10", "Shop.Closed", "\"cart 7\"", "cart.ml:Shop.total"},
		{"raised CONSTRAINT_ERROR : cart.adb:672 index check failed\n0xdc997e1c4ca43f6a Cart.Total at cart.adb:672\n0xdc997e1c4ca43f6b Shop at shop.adb:283", "CONSTRAINT_ERROR", "cart.adb:672 index check failed", "cart.adb:Cart.Total"},
		{"no such cart\nCart.total (cart.pas:12)\nPage.show (page.pas:30)", "", "no such cart", "cart.pas:Cart.total"},
	} {
		var got Trace
		got.Read("", "", []string{c.trace}, nil, nil)
		s := got.Root()
		if own := ownCalls(&got); len(own) < 2 || s.Type != c.typ || s.Message != c.message || own[0] != c.innermost {
			t.Errorf("%q is %q, %q of %q", c.trace, s.Type, s.Message, own)
		}
	}
	var got Trace
	got.Read("", "", []string{"it broke\ntotal (cart.pas:12)"}, nil, nil)
	if len(got.Frames()) != 2 || got.Frames()[1].File != "" {
		t.Errorf("one line with a place is no trace: %+v", got.Frames())
	}
}
