package grouping_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

// The search for entries names their types, as far as each can be searched for and scrubbing changes none.
func TestEntrySearch(t *testing.T) {
	many := make([]string, grouping.MaxEntryTypes+1)
	for i := range many {
		many[i] = fmt.Sprintf("E%d", i)
	}
	ruled := func(text string) *grouping.Ruleset { // all are of one kind
		rules, err := grouping.ParseRules("same \"One\" message:m\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	one, scrubs := ruled(""), ruled("scrub email")
	for name, c := range map[string]struct {
		types []string
		rules *grouping.Ruleset
		want  string
	}{
		"one":             {types: []string{"A", "A"}, want: `error.type:"A"`},
		"several":         {types: []string{"B", "A", "B"}, want: `error.type:"A" OR error.type:"B"`},
		"escaped":         {types: []string{`a"b\c`}, want: `error.type:"a\"b\\c"`},
		"none":            {types: []string{"A", "", "B"}, want: "exists:error"},
		"as many":         {types: many[1:], want: `error.type:"` + strings.Join(many[1:], `" OR error.type:"`) + `"`},
		"too many":        {types: many, want: "exists:error"},
		"as long":         {types: []string{strings.Repeat("x", 200)}, want: `error.type:"` + strings.Repeat("x", 200) + `"`},
		"too long":        {types: []string{strings.Repeat("x", 201)}, want: "exists:error"},
		"long by escapes": {types: []string{strings.Repeat(`"`, 101)}, want: "exists:error"},
		"not printable":   {types: []string{"A\x00"}, want: "exists:error"},
		"spaces":          {types: []string{" A"}, want: "exists:error"},
		"replaced":        {types: []string{"A\ufffd"}, want: "exists:error"},
		"scrubbed":        {types: []string{"no mail to bob@example.com"}, rules: scrubs, want: "exists:error"},
		"not scrubbed":    {types: []string{"A"}, rules: scrubs, want: `error.type:"A"`},
	} {
		tally, halves := grouping.NewTally(), [2]*grouping.Count{}
		if c.rules == nil {
			c.rules = one
		}
		for i, typ := range c.types { // as one count, and each alone, merged
			o := grouping.Occurrence{Accepted: time.Unix(100, 0), At: time.Unix(int64(i), 0), Error: grouping.Error{
				Type: typ, Message: "m", Learned: grouping.Learned{Rules: c.rules}}}
			halves[0] = tally.Add(o)
			one := grouping.NewTally().Add(o)
			if halves[1] == nil {
				halves[1] = one
			} else {
				halves[1].Merge(one)
			}
		}
		for _, half := range halves {
			if got := half.Entries.Query(); got != c.want || len(got) > 2000 {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			if got := half.Entries.Last; !got.Equal(time.Unix(int64(len(c.types)-1), 0)) {
				t.Errorf("%s: until %s", name, got)
			}
		}
	}
}

// An entry that names a time ahead of its acceptance is searched for there.
func TestEntrySearchAhead(t *testing.T) {
	later := time.Date(2027, 1, 1, 0, 0, 0, 1000, time.UTC)
	c := grouping.NewTally().Add(grouping.Occurrence{Accepted: time.Unix(100, 0), At: time.Unix(100, 0), Ahead: later.UnixMicro(), Error: grouping.Error{Type: "E"}})
	if !c.Entries.Last.Equal(later) || !c.Last.Equal(time.Unix(100, 0)) {
		t.Errorf("until %s, and last seen at %s", c.Entries.Last, c.Last)
	}
}
