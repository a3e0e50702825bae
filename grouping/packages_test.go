package grouping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A package is a library's where most errors have another one in common, and it
// is rare, seen several times and hardly ever alone.
func TestLibrariesOfAProject(t *testing.T) {
	var p Packages
	for i := range 100 {
		names := []string{"com.acme"}
		for name, kinds := range map[string]int{"org.vendor": 20, "com.acquired": 20, "io.framework": 40, "net.once": 2} {
			if i < kinds {
				names = append(names, name)
			}
		}
		p.Add(names)
	}
	for range 5 {
		p.Add([]string{"com.acquired"})
	}
	p.Add(nil)
	if got := slices.Collect(maps.Keys(p.Libraries())); p.Kinds != 105 || !slices.Equal(got, []string{"org.vendor"}) {
		t.Errorf("libraries %q of %d kinds", got, p.Kinds)
	}
}

// Where no package is in most errors, nothing is told.
func TestNoLibrariesWithoutAMajority(t *testing.T) {
	var p, none Packages
	for range 40 {
		p.Add([]string{"com.acme"})
		p.Add([]string{"com.other"})
	}
	for range 4 {
		p.Add([]string{"com.acme", "org.vendor"})
		p.Add([]string{"com.other", "org.vendor"})
	}
	if got := len(p.Libraries()) + len(none.Libraries()); got != 0 {
		t.Errorf("%d libraries", got)
	}
}

// Libraries are looked for when the kinds have doubled, and packages are forgotten.
func TestPackagesAreFew(t *testing.T) {
	var p Packages
	var due []int
	for i := range 1000 {
		p.Add([]string{"com.acme", fmt.Sprint("org.vendor", i)})
		if p.Due(i) {
			due = append(due, i+1)
		}
	}
	if !slices.Equal(due, []int{64, 128, 256, 512}) || len(p.Seen) != maxPackages || p.Seen["com.acme"].Kinds != 1000 {
		t.Errorf("due at %v, %d packages, %+v", due, len(p.Seen), p.Seen["com.acme"])
	}
}

// Packages are told by the names of makers, where paths do not tell; what is no
// text, or too long to be stored, is none.
func TestPackagesOf(t *testing.T) {
	for _, c := range []struct {
		stack string
		want  []string
	}{
		{"\tat com.acme.shop.Cart.total(Cart.java:1)\n\tat org.apache.hive.ql.Driver.run(Driver.java:1)\n\tat java.lang.Thread.run(Thread.java:1)\n\tat com.acme.Page.show(Page.java:1)",
			[]string{"com.acme", "org.apache.hive"}},
		{"\tat Cart.total(Cart.java:1)\n\tat shop.Page.show(Page.java:1)", []string{"shop"}},
		{"   at Acme.Shop.Cart.Total(Int32 id)\n   at System.Threading.Thread.Run()\n   at Cart.Show()", []string{"Acme"}},
		{"    at total (/app/node_modules/cart/index.js:1:2)\n    at show (/app/page.js:1:2)", nil},
		{"\tat com.ac\x00me.Cart.total(A.java:1)\n\tat com.ac\xffme.Cart.total(A.java:1)\n\tat com." + strings.Repeat("a", 197) + ".Cart.total(A.java:1)\n\tat com." +
			strings.Repeat("a", 196) + ".Cart.total(A.java:1)", []string{"com." + strings.Repeat("a", 196)}},
	} {
		var g Grouper
		d := g.Fingerprint(thrown("E", "boom", c.stack)).Describe()
		if got := PackagesOf(d.Language, d.Exceptions); !slices.Equal(got, c.want) {
			t.Errorf("%q in\n%s", got, c.stack)
		}
	}
}

// What a library does inside moves no error of those who call it.
func TestCallsInALibrary(t *testing.T) {
	var g Grouper
	inside := func(call string) Error {
		e := thrown("com.acme.NoCart", "", "\tat org.vendor.Client."+call+"(Client.java:1)\n\tat org.vendor.Client.send(Client.java:1)\n"+
			"\tat com.acme.Cart.total(Cart.java:1)\n\tat com.acme.Page.show(Page.java:1)")
		e.Learned.Libraries = Libraries{"org.vendor": true}
		return e
	}
	one, other := inside("retry"), inside("flush")
	found := g.Fingerprint(one).Deciding()
	if g.Fingerprint(other).Deciding() != found {
		t.Error("another call in the library moves the error")
	}
	one.Learned, other.Learned = Learned{}, Learned{}
	if g.Fingerprint(one).Deciding() == g.Fingerprint(other).Deciding() {
		t.Error("the library's calls do not count where it is not known")
	}
}
