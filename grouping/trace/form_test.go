package trace

import "testing"

// A form reads the lines that it describes, and no others.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		form, line string
		want       Frame // without a function: the line does not have the form
	}{
		{"$fn, called at $at~hs in $mod", "total, called at src/Cart.hs:12:3 in shop:Cart", Frame{Function: "total", Module: "shop:Cart", File: "src/Cart.hs", Line: 12, Column: 3}},
		{"$fn, called at $at~hs in $mod", "total, called at src/Cart.rs:12:3 in shop:Cart", Frame{}},
		{"$fn at $file", "a at b at c", Frame{Function: "a", File: "b at c"}},
		{"$fn* at $file", "a at b at c", Frame{Function: "a at b", File: "c"}},
		{"$n: $fn^", "3:   total  ", Frame{Function: "total"}},
		{"$n: $fn^", "3: total of a cart", Frame{}},
		{"$n: $fn^", "x: total", Frame{}},
		{"$fn($_)", "total(7)", Frame{Function: "total"}},
		{"$fn($_)", "total(7) of a cart", Frame{}},
		{"@ $hex $fn", "@     0x55d1c2a3b4c5  total", Frame{Function: "total"}},
		{"@ $hex $fn", "@ 0x55 total", Frame{}},
		{"$place~.ex|.exs: $fn", "lib/cart.exs:12: total", Frame{Function: "total", File: "lib/cart.exs", Line: 12}},
		{"$fn:$line:$col", "total:12:3", Frame{Function: "total", Line: 12, Column: 3}},
		{"\t$fn()", "  total()", Frame{Function: "total"}},
		{"\t$fn()", "total()", Frame{}},
	} {
		p, got := formOf(c.form), Frame{}
		if ok := p.frame(c.line, &got); ok != (c.want.Function != "") || ok && got != c.want {
			t.Errorf("%q of %q is %+v, %v", c.line, c.form, got, ok)
		}
		has := newLine(c.line).has
		if first, last := p.ends(); c.want.Function != "" && (p.needs|first|last)&^has != 0 {
			t.Errorf("%q has not what %q needs", c.line, c.form)
		}
	}
}

// The mark of a line is what its first form says.
func TestMarkForms(t *testing.T) {
	forms := []markForm{{cause, formOf("Caused by: $error")}, {header, formOf("** ($type) $msg")}, {trailer, formOf("$class")}}
	for line, want := range map[string]mark{
		"Caused by: a.Closed: no": {cause, "a.Closed", "no"}, "Caused by: it broke": {cause, "", "it broke"}, "** (Closed) no": {header, "Closed", "no"},
		"KeyError: 7": {trailer, "KeyError", "7"}, "note: no error": {}, "": {},
	} {
		if got := markIn(newLine(line), forms); got != want {
			t.Errorf("%q is %+v, want %+v", line, got, want)
		}
	}
}
