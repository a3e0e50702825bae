package tenants_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/tenants"
)

// Everybody can read a key of web pages: it reads nothing and has a limit
// of its own, when it is issued and however it is changed.
func TestKeysOfWebPages(t *testing.T) {
	issue := func(origins ...string) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			cmd := issueKey()
			cmd.Access, cmd.RatePerMinute, cmd.Origins = tenants.WriteAccess, 60, origins
			return k.Issue(cmd)
		}
	}
	change := func(to tenants.KeySettings) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Change(tenants.ChangeAPIKey{KeySettings: to, At: noon})
		}
	}
	ofShop := keyIssued()
	ofShop.Access, ofShop.RatePerMinute, ofShop.Origins = tenants.WriteAccess, 60, []string{"https://shop.example"}
	changed := tenants.APIKeyChanged{APIKey: "key_1", Name: ofShop.Name, RatePerMinute: 60, Access: tenants.WriteAccess, At: noon, Sending: ofShop.Sending}
	isLenient, ofPrograms := changed, changed
	isLenient.Lenient = true
	ofPrograms.Origins = nil
	given := []tenants.Event{ofShop}
	full, unlimited, yes, one, none := tenants.FullAccess, 0, true, []string{"https://shop.example"}, []string{}
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprintf("https://shop%d.example", i))
	}
	decide(t, map[string]decision[tenants.APIKey]{
		"as people write it":          {when: issue(" HTTPS://Shop.example/", "https://shop.example"), then: given},
		"with a path":                 {when: issue("https://shop.example/cart"), faults: []string{"origins"}},
		"without a scheme":            {when: issue("shop.example"), faults: []string{"origins"}},
		"all pages":                   {when: issue("*"), faults: []string{"origins"}},
		"all subdomains":              {when: issue("https://*.shop.example"), faults: []string{"origins"}},
		"an opaque origin":            {when: issue("null"), faults: []string{"origins"}},
		"the usual port":              {when: issue("https://shop.example:443"), then: given},
		"a port beyond all":           {when: issue("https://shop.example:99999"), faults: []string{"origins"}},
		"a port that is empty":        {when: issue("https://shop.example:"), faults: []string{"origins"}},
		"letters beyond ASCII":        {when: issue("https://bücher.example"), faults: []string{"origins"}},
		"another way to write it":     {when: issue("https://[2001:db8:0::1]"), faults: []string{"origins"}},
		"two in one":                  {when: issue("https://a,b.example"), faults: []string{"origins"}},
		"too many":                    {when: issue(many...), faults: []string{"origins"}},
		"one that reads, unlimited":   {given: []tenants.Event{keyIssued()}, when: change(tenants.KeySettings{Origins: &one}), faults: []string{"access", "rate_per_minute"}},
		"one that is to read":         {given: given, when: change(tenants.KeySettings{Access: &full}), faults: []string{"access"}},
		"one that is to be unlimited": {given: given, when: change(tenants.KeySettings{RatePerMinute: &unlimited}), faults: []string{"rate_per_minute"}},
		"the same origins":            {given: given, when: change(tenants.KeySettings{Origins: &one})},
		"to be lenient":               {given: given, when: change(tenants.KeySettings{Lenient: &yes}), then: []tenants.Event{isLenient}},
		"for programs again":          {given: given, when: change(tenants.KeySettings{Origins: &none}), then: []tenants.Event{ofPrograms}},
		"issued again, for programs":  {given: given, when: issue(), fails: tenants.ErrReused},
	})
}
