package grouping_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

var colleagues = []grouping.Member{
	{ID: "mem_ada", Name: "Ada Lovelace"}, {ID: "mem_ann", Name: "Ann Lee"}, {ID: "mem_ann2", Name: "Ann Leeds"},
	{ID: "mem_bo", Name: "Bö"}, {ID: "mem_c1", Name: "Chris Doe"}, {ID: "mem_c2", Name: "chris doe"}, {ID: "mem_nameless"},
}

// A note mentions members by id, name or first name, and nobody by what
// could be several or is no name.
func TestMentions(t *testing.T) {
	for note, want := range map[string]struct {
		members string
		unknown string
	}{
		"no one":                         {},
		"@Ada Lovelace, see":             {members: "mem_ada"},
		"see @ada.":                      {members: "mem_ada"},
		"@ADA and @Ada Lovelace":         {members: "mem_ada"},
		"(@mem_bo)":                      {members: "mem_bo"},
		"@BÖ!":                           {members: "mem_bo"},
		"@Ann Lee":                       {members: "mem_ann"},
		"@Ann Leeds and @Ann Lee":        {members: "mem_ann2 mem_ann"},
		"@Ann":                           {unknown: "Ann"},
		"@Chris Doe":                     {unknown: "Chris"},
		"@Adam @bob, @bob and @Override": {unknown: "Adam bob Override"},
		"ada@example.com, x@Ada":         {},
		"@babel/core, @Test(timeout), @": {},
		"@@Ada":                          {members: "mem_ada"},
		"@\xff @Ada":                     {members: "mem_ada"},
	} {
		t.Run(note, func(t *testing.T) {
			var state grouping.State
			decided, err := state.Decide(grouping.Command{Note: note}.Named(colleagues), 0, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			d := decided[0]
			if members, unknown := strings.Join(d.Mentions, " "), strings.Join(d.Unknown, " "); members != want.members || unknown != want.unknown {
				t.Errorf("mentions %q, unknown are %q", members, unknown)
			}
			var text strings.Builder
			spans, _ := grouping.SpansOf(note, colleagues)
			for _, s := range spans {
				text.WriteString(s.Text)
			}
			if text.String() != note {
				t.Errorf("the spans are %q", text.String())
			}
		})
	}
}

// A note mentions a few members, each once.
func TestMentionsAreBounded(t *testing.T) {
	var members []grouping.Member
	var note, strangers strings.Builder
	for i := range grouping.MaxMentions + 1 {
		members = append(members, grouping.Member{ID: fmt.Sprintf("mem_%02d", i), Name: fmt.Sprintf("Member%02d", i)})
		fmt.Fprintf(&note, "@member%02d ", i)
		fmt.Fprintf(&strangers, "@stranger%02d ", i)
	}
	var state grouping.State
	if _, err := state.Decide(grouping.Command{Note: note.String()}.Named(members), 0, time.Now()); err == nil ||
		err.Error() != "The note mentions 11 members. Mention at most 10." {
		t.Errorf("err = %v", err)
	}
	decided, err := state.Decide(grouping.Command{Note: strangers.String() + strings.Repeat("@Member01 ", 50)}.Named(members), 0, time.Now())
	if err != nil || !slices.Equal(decided[0].Mentions, []string{"mem_01"}) || len(decided[0].Unknown) != grouping.MaxMentions {
		t.Errorf("decided = %+v, %v", decided, err)
	}
}

// What a note says after so many @ is text, those of addresses not counted.
func TestSignsAreBounded(t *testing.T) {
	signs := strings.Repeat("x@y ", 10) + strings.Repeat("@", grouping.MaxSigns)
	for note, want := range map[string]int{signs + "Ada": 1, signs + "@Ada": 0} {
		if got := (grouping.Command{Note: note}).Named(colleagues).Mentions; len(got) != want {
			t.Errorf("%q mentions %q, not %d", note, got, want)
		}
	}
}

// Groups are assigned to members by name, too; any other text is a label.
func TestAssignByName(t *testing.T) {
	for text, want := range map[string]grouping.Assignee{
		"mem_ada": {ID: "mem_ada", Name: "Ada Lovelace"}, "ada lovelace": {ID: "mem_ada", Name: "Ada Lovelace"},
		"Chris Doe": {ID: "Chris Doe"}, "payments": {ID: "payments"}, "mem_gone": {ID: "mem_gone"},
	} {
		var state grouping.State
		decided, err := state.Decide(grouping.Command{Assign: &grouping.Assignee{ID: text}}.Named(colleagues), 0, time.Now())
		if err != nil || decided[0].Assignee != want {
			t.Errorf("%q: %+v, %v", text, decided, err)
		}
	}
}
