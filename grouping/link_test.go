package grouping_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

var ticket = grouping.Link{ID: "lnk_1", URL: "https://tracker.example/PAY-7", Title: "PAY-7", Webhook: "whk_1"}

// A group has links, whatever becomes of it, and each address once.
func TestLinks(t *testing.T) {
	state := after(grouping.Decision{Kind: grouping.WasLinked, Link: ticket}, resolved(1), ignored(2, grouping.Until{}), archived,
		grouping.Decision{Kind: grouping.WasMerged, Into: "grp_1"})
	if !reflect.DeepEqual(state.Links, []grouping.Link{ticket}) {
		t.Fatalf("links: %+v", state.Links)
	}
	same, other := ticket, ticket
	same.ID, other.ID, other.Title = "lnk_2", "lnk_2", "Payment fails"
	if decided, err := state.Link(same, 5, at(3)); err != nil || decided != nil {
		t.Errorf("the same: %+v, %v", decided, err)
	}
	decided, err := state.Link(other, 5, at(3))
	if err != nil || len(decided) != 1 || decided[0].Link.ID != "lnk_1" {
		t.Fatalf("another title: %+v, %v", decided, err)
	}
	before := state
	if state.Apply(decided[0]); len(state.Links) != 1 || state.Links[0].Title != "Payment fails" || before.Links[0].Title != "PAY-7" {
		t.Errorf("links: %+v, before %+v", state.Links, before.Links)
	}
	if decided, err := state.Unlink("lnk_9", 6, at(4)); err != nil || decided != nil {
		t.Errorf("a link that is not there: %+v, %v", decided, err)
	}
	decided, _ = state.Unlink("lnk_1", 6, at(4))
	if state.Apply(decided[0]); len(state.Links) != 0 || decided[0].Link.Title != "Payment fails" {
		t.Errorf("links: %+v", state.Links)
	}
	if _, err := state.Link(ticket, grouping.MaxDecisions, at(5)); !errors.Is(err, grouping.ErrFull) {
		t.Errorf("one decision too many: %v", err)
	}
}

// What is no link is refused, with the reason.
func TestLinkFaults(t *testing.T) {
	for link, field := range map[grouping.Link]string{
		{URL: "javascript:alert(1)"}: "url", {URL: "tracker.example/1"}: "url", {URL: "https://"}: "url", {URL: "https://a:b@tracker.example"}: "url",
		{URL: "https://:80/x"}: "url", {URL: "https://a/\n"}: "url", {URL: "https://a/" + strings.Repeat("x", 2000)}: "url", {URL: "ftp://a/b"}: "url",
		{URL: "https://a/b", Title: strings.Repeat("é", 201)}: "title",
	} {
		var invalid grouping.Invalid
		if _, err := (grouping.State{}).Link(link, 0, at(0)); !errors.As(err, &invalid) || invalid.Field != field || invalid.Fix == "" {
			t.Errorf("%+v: %v, want one of %s", link, err, field)
		}
	}
	var state grouping.State
	for i := range grouping.MaxLinks {
		state.Apply(grouping.Decision{Kind: grouping.WasLinked, Link: grouping.Link{ID: fmt.Sprint(i), URL: fmt.Sprint("https://a/", i)}})
	}
	if _, err := state.Link(ticket, 20, at(0)); err == nil || !strings.Contains(err.Error(), "20 links") {
		t.Errorf("one link too many: %v", err)
	}
}
