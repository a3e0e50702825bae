package grouping_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

var ticket = grouping.Link{URL: "https://tracker.example/PAY-7", Title: "PAY-7", Webhook: "whk_1"}

// A group has the links that are decided, whatever becomes of it, and each address once.
func TestLinks(t *testing.T) {
	state := after(grouping.Decision{Kind: grouping.WasLinked, Link: ticket}, resolved(1), ignored(2, grouping.Until{}), archived,
		grouping.Decision{Kind: grouping.WasMerged, Into: "grp_1"})
	if !reflect.DeepEqual(state.Links, []grouping.Link{ticket}) {
		t.Fatalf("links: %+v", state.Links)
	}
	retitled, other := ticket, grouping.Link{URL: "https://tracker.example/PAY-8"}
	retitled.Title = "Payment fails"
	for _, c := range []struct {
		name  string
		links []grouping.Link
		kinds []grouping.Kind
	}{
		{"the same", []grouping.Link{ticket}, nil},
		{"another title", []grouping.Link{retitled}, []grouping.Kind{grouping.WasLinked}},
		{"one more", []grouping.Link{retitled, other}, []grouping.Kind{grouping.WasLinked}},
		{"another one", []grouping.Link{ticket}, []grouping.Kind{grouping.WasUnlinked, grouping.WasLinked}},
		{"none", []grouping.Link{}, []grouping.Kind{grouping.WasUnlinked}},
	} {
		before := slices.Clone(state.Links)
		kept := state.Links
		decided, err := state.Decide(grouping.Command{Links: &c.links}, 5, at(3))
		var kinds []grouping.Kind
		for _, d := range decided {
			kinds = append(kinds, d.Kind)
			state.Apply(d)
		}
		if err != nil || !slices.Equal(kinds, c.kinds) || !slices.Equal(state.Links, c.links) || !slices.Equal(kept, before) {
			t.Errorf("%s: %v, %v; links %+v, and those before %+v", c.name, kinds, err, state.Links, kept)
		}
	}
	if _, err := state.Decide(grouping.Command{Links: &[]grouping.Link{ticket, other}}, grouping.MaxDecisions-1, at(5)); !errors.Is(err, grouping.ErrFull) {
		t.Errorf("one decision too many: %v", err)
	}
}

// What is no link is refused, with its place and the reason.
func TestLinkFaults(t *testing.T) {
	refused := func(field string, links ...grouping.Link) {
		var invalid grouping.Invalid
		_, err := (grouping.State{}).Decide(grouping.Command{Links: &links}, 0, at(0))
		if !errors.As(err, &invalid) || invalid.Field != "external_links"+field || invalid.Fix == "" {
			t.Errorf("%+v: %v of %q, want one of %s", links, err, invalid.Field, field)
		}
	}
	for link, field := range map[grouping.Link]string{
		{URL: "javascript:alert(1)"}: "url", {URL: "tracker.example/1"}: "url", {URL: "https://"}: "url", {URL: "https://a:b@tracker.example"}: "url",
		{URL: "https://:80/x"}: "url", {URL: "https://a/\n"}: "url", {URL: "https://a/" + strings.Repeat("x", 2000)}: "url", {URL: "ftp://a/b"}: "url",
		{URL: "https://a/b", Title: strings.Repeat("é", 201)}: "title",
	} {
		refused("/1/"+field, ticket, link)
	}
	refused("/1/url", ticket, ticket)
	many := make([]grouping.Link, grouping.MaxLinks+1)
	for i := range many {
		many[i] = grouping.Link{URL: fmt.Sprint("https://a/", i)}
	}
	refused("", many...)
}
