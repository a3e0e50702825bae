package grouping_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

// Who looks after a group: the first rule that matches in all.
func TestOwners(t *testing.T) {
	of := grouping.Owned{
		Calls:        []grouping.Call{{File: "/srv/shop/src/pay/card/charge.go", Function: "pay.charge"}, {File: `C:\shop\web\Cart.cs`, Function: "Acme.Shop.Cart.Total"}},
		Environments: []string{"prod", "staging"}, Services: []string{"checkout"}, Hosts: []string{"web-1"}, Releases: []string{"shop@2.1.0"},
		Metadata: map[string]string{"tenant.id": "acme-7", "region": ""},
	}
	for text, want := range map[string]string{
		"path:src/pay/** => a":                    "a",
		"path:src/pay/* => a":                     "",
		"path:src/*/card/*.go => a":               "a",
		"path:pay/ => a":                          "a",
		"path:ay/ => a":                           "",
		"path:/srv/** => a":                       "a",
		"path:/src/** => a":                       "",
		"path:charge.go => a":                     "a",
		"path:web/Cart.* => a":                    "a",
		"path:**/card/**.go => a":                 "a",
		"function:charge => a":                    "a",
		"function:pay.* => a":                     "a",
		"function:Acme.Shop.* => a":               "a",
		"function:harge => a":                     "",
		"environment:prod => a":                   "a",
		"environment:pro => a":                    "",
		"service:check* host:web-? => a":          "",
		"service:check* host:web-* => a":          "a",
		"release:shop@2.* => a":                   "a",
		"path:src/mail/** => a\npath:src/** => b": "b",
		"path:src/** => a\npath:src/pay/** => b":  "a",
		"path:src/pay/** environment:dev => a":    "",
		"metadata.tenant.id:acme* => a":           "a",
		"metadata.tenant.id:acme => a":            "",
		"metadata.region:* => a":                  "",
		"metadata.plan:* => a":                    "",
		"path:** metadata.tenant.id:*-8 => a":     "",
		"# all others\n\npath:** => b c":          "b c",
	} {
		rules, err := grouping.ParseOwners(text)
		d, _ := rules.Assign(&of, grouping.State{}, 0)
		if err != nil || d.Assignee.ID != want || (want != "") != strings.HasPrefix(d.Reason, "Rule ") {
			t.Errorf("%q: %+v, %v, want %q", text, d, err, want)
		}
	}
	rules := grouping.Owners{{Path: "**", Assignee: "a"}}
	for name, s := range map[string]grouping.State{"has one": {Assignee: grouping.Assignee{ID: "mem_1"}}, "is merged": {Into: "grp_1"}} {
		if d, follows := rules.Assign(&of, s, 0); follows {
			t.Errorf("what %s is given to %+v", name, d)
		}
	}
	if _, follows := rules.Assign(&of, grouping.State{}, grouping.MaxDecisions); follows {
		t.Error("one decision too many")
	}
}

// Rules are read as they are written.
func TestOwnersAreReadAsWritten(t *testing.T) {
	rules := grouping.Owners{
		{Path: "src/pay dir/**", Environment: "prod", Assignee: "Payments team"}, {Function: "com.acme.*", Service: "a", Host: "b", Release: "c", Assignee: "mem_1"},
		{Path: "a", Metadata: map[string]string{"tenant.id": "acme *", "plan": "gold"}, Assignee: "b"},
	}
	read, err := grouping.ParseOwners(rules.Text())
	if err != nil || !reflect.DeepEqual(read, rules) {
		t.Errorf("%q is read as %+v, %v", rules.Text(), read, err)
	}
}

// What is wrong with rules is named, with its place.
func TestOwnerFaults(t *testing.T) {
	for field, rules := range map[string]grouping.Owners{
		"rules": make(grouping.Owners, 51), "rules/0": {{Assignee: "a"}}, "rules/0/path": {{Path: strings.Repeat("a", 201), Assignee: "a"}},
		"rules/1/host": {{Path: "a", Assignee: "a"}, {Host: "a\nb", Assignee: "a"}}, "rules/0/assignee": {{Path: "a"}},
		"rules/0/metadata": {{Metadata: map[string]string{"a..b": "x"}, Assignee: "a"}}, "rules/1/metadata": {{Path: "a", Assignee: "a"}, {Metadata: map[string]string{"a": ""}, Assignee: "a"}},
	} {
		var invalid grouping.Invalid
		if err := rules.Check(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	many := grouping.Owners{{Metadata: map[string]string{}, Assignee: "a"}}
	for n := range 11 {
		many[0].Metadata[strings.Repeat("a", n+1)] = "x"
	}
	if err := many.Check(); err == nil || !strings.Contains(err.Error(), "11 different values") {
		t.Errorf("many paths: %v", err)
	}
	for text, want := range map[string]string{
		"path:a\npath:b => c": `Line 1: "path:a" has no =>.`, "path:a => b\n\nfile:a => b": `Line 3: "file" is not one of`, "path:a path:b => c": "path is named twice",
		"metadata.a:b metadata.a:b => c": "metadata.a is named twice", "metadata:a => b": `"metadata" is not one of`, "metadata.a => b": "is not one of",
		"path:a =>": "assigns to",
	} {
		if _, err := grouping.ParseOwners(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A pattern of many stars takes no long time.
func TestGlobsAreFast(t *testing.T) {
	rule := grouping.Owners{{Path: strings.Repeat("**a*", 40) + "b", Assignee: "a"}}
	of := grouping.Owned{Calls: []grouping.Call{{File: strings.Repeat("a/", 150)}}}
	began := time.Now()
	if d, follows := rule.Assign(&of, grouping.State{}, 0); follows {
		t.Errorf("%+v", d)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// Rules name members as people do, and are kept with their ids.
func TestOwnersByName(t *testing.T) {
	rules, err := grouping.ParseOwners("path:a => ada lovelace\npath:b => payments\npath:c => Chris Doe\npath:d => mem_c1\npath:e => mem_ada")
	if err != nil {
		t.Fatal(err)
	}
	byID := rules.ByID(colleagues)
	if got := byID.Text(); got != "path:a => mem_ada\npath:b => payments\npath:c => Chris Doe\npath:d => mem_c1\npath:e => mem_ada\n" {
		t.Errorf("kept: %s", got)
	}
	if got := byID.ByName(colleagues).Text(); got != "path:a => Ada Lovelace\npath:b => payments\npath:c => Chris Doe\npath:d => mem_c1\npath:e => Ada Lovelace\n" {
		t.Errorf("shown: %s", got)
	}
}
