package ruletext_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ruletext"
)

// kept lists the versions of some texts, the oldest first.
func kept(texts ...string) ruletext.Lister {
	return func(before int64, limit int) (found []ruletext.Version, err error) {
		for i := len(texts); i > 0 && len(found) < limit; i-- {
			if int64(i) < before {
				found = append(found, ruletext.Version{Number: int64(i), Text: texts[i-1]})
			}
		}
		return found, nil
	}
}

var errRules = errors.New("the rules are wrong")

func check(text string) error {
	if text == "wrong" {
		return errRules
	}
	return nil
}

// What is wished becomes the next version, unless it is there already, another one is in
// its place, or something is wrong with it.
func TestNext(t *testing.T) {
	version := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		list ruletext.Lister
		wish ruletext.Wish
		want ruletext.Version
	}{
		"the first":                       {kept(), ruletext.Wish{Text: "a", Note: " why "}, ruletext.Version{Number: 1, Text: "a", Note: "why"}},
		"none instead of none":            {kept(), ruletext.Wish{}, ruletext.Version{}},
		"whatever there is":               {kept("a", "b"), ruletext.Wish{Text: "c"}, ruletext.Version{Number: 3, Text: "c"}},
		"instead of what was seen":        {kept("a", "b"), ruletext.Wish{Text: "c", IfVersion: version(2)}, ruletext.Version{Number: 3, Text: "c"}},
		"the same":                        {kept("a", "b"), ruletext.Wish{Text: "b"}, ruletext.Version{Number: 2, Text: "b"}},
		"the same request again":          {kept("a", "b"), ruletext.Wish{Text: "b", IfVersion: version(1)}, ruletext.Version{Number: 2, Text: "b"}},
		"an earlier one":                  {kept("a", "b"), ruletext.Wish{Restore: 1, IfVersion: version(2)}, ruletext.Version{Number: 3, Text: "a", Restored: 1}},
		"an earlier one, the same again":  {kept("a", "b", "a"), ruletext.Wish{Restore: 1, IfVersion: version(2)}, ruletext.Version{Number: 3, Text: "a"}},
		"the text of a version is copied": {kept("a", "b"), ruletext.Wish{Restore: 1, Text: "c"}, ruletext.Version{Number: 3, Text: "a", Restored: 1}},
	} {
		newest, next, err := c.wish.Next(c.list, check)
		now, _ := c.list.Newest()
		if err != nil || next != c.want || newest != now {
			t.Errorf("%s: %+v after %+v, %v", name, next, newest, err)
		}
	}
}

// A request is refused for one reason, which it can mend.
func TestRefusals(t *testing.T) {
	one := int64(1)
	for name, c := range map[string]struct {
		wish ruletext.Wish
		is   func(error) bool
	}{
		"another one came first":  {ruletext.Wish{Text: "c", IfVersion: &one}, isConflict},
		"a retry that came late":  {ruletext.Wish{Text: "a", IfVersion: new(int64)}, isConflict},
		"a restore that is late":  {ruletext.Wish{Restore: 1, IfVersion: &one}, isConflict},
		"wrong rules":             {ruletext.Wish{Text: "wrong"}, func(err error) bool { return errors.Is(err, errRules) }},
		"a note of two lines":     {ruletext.Wish{Text: "b", Note: "a\nb"}, isProblem(http.StatusBadRequest, "/note")},
		"a note with a separator": {ruletext.Wish{Text: "b", Note: "a\u2028b"}, isProblem(http.StatusBadRequest, "/note")},
		"a note with a control":   {ruletext.Wish{Text: "b", Note: "a\u0085b"}, isProblem(http.StatusBadRequest, "/note")},
		"a long note":             {ruletext.Wish{Text: "c", Note: strings.Repeat("ä", 201)}, isProblem(http.StatusBadRequest, "/note")},
		"a version that is gone":  {ruletext.Wish{Restore: 9}, isProblem(http.StatusNotFound, "")},
	} {
		if _, _, err := c.wish.Next(kept("a", "b"), check); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "9223372036854775807", "9223372036854775808"} {
		if _, err := ruletext.ParseNumber(text); !isProblem(http.StatusNotFound, "")(err) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func isConflict(err error) bool {
	var conflict ruletext.Conflict
	return errors.As(err, &conflict) && conflict.Now.Number == 2
}

func isProblem(status int, pointer string) func(error) bool {
	return func(err error) bool {
		var problem *httpapi.Problem
		return errors.As(err, &problem) && problem.Status == status && (pointer == "" || problem.Faults[0].Pointer == pointer)
	}
}

// The audit shows the lines that came and went.
func TestChanged(t *testing.T) {
	former := ruletext.Version{Number: 3, Text: "a\n b\n\nc"}
	before, after := ruletext.Changed(former, ruletext.Version{Number: 4, Text: "b\nd\na\r\ne", Note: "why", Restored: 1})
	want := map[string]string{"version": "4", "note": "why", "restored_version": "1", "added": "d\ne", "removed": "c"}
	if before["version"] != "3" || !maps.Equal(after, want) {
		t.Errorf("%q became %q", before, after)
	}
}
