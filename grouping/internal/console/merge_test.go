package console_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Chosen errors are merged into the one that was seen first, whose page tells what belongs to it
// and takes it out again. The address of a member leads there.
func TestMerge(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors")
	var ids []string
	for _, field := range groupField.FindAllStringSubmatch(list, -1) {
		ids = append(ids, field[1])
	}
	for _, form := range []url.Values{{"do": {"merge"}, "group": ids[:1]}, {"do": {"merge"}, "group": ids, "all": {"1"}}} {
		if status, _ := post(pages, "/console/errors/decide", form); status != 303 {
			t.Errorf("merging nothing: %d", status)
		}
	}
	shows(t, pages, "/console/errors", "AlphaError", "BetaError")
	if status, leads := post(pages, "/console/errors/decide", url.Values{"do": {"merge"}, "group": ids, "key": {"once"}}); status != 303 {
		t.Fatalf("merging leads to %d %s", status, leads)
	}
	_, list = get(pages, "/console/errors")
	if !strings.Contains(list, "1 merged") || strings.Contains(list, "BetaError") {
		t.Errorf("the list is %s", list)
	}
	head := groupLink.FindStringSubmatch(list)[1]
	shows(t, pages, head, "Merged from 1 other group", "BetaError", "<dd>3 times</dd>", "merged a group into it")
	_, page := get(pages, head)
	member := groupField.FindStringSubmatch(page)[1]
	if status, _ := get(pages, "/console/errors/"+member); status != 303 {
		t.Errorf("the page of a member: %d", status)
	}
	form := url.Values{"do": {"unmerge"}, "group": {member}, "version": {versionField.FindStringSubmatch(page)[1]}}
	if status, leads := post(pages, head+"/decide", form); status != 303 {
		t.Errorf("taking it out: %d %s", status, leads)
	}
	shows(t, pages, "/console/errors/"+member, "took it out of another group", `href="`+head+`"`, "Merge into this one")
	if status, page := post(pages, head+"/decide", form); status != 409 || !strings.Contains(page, "Somebody decided meanwhile") {
		t.Errorf("the second of two: %d %s", status, page)
	}
}

// Errors like a sample are split off, and the page says what of that is true of earlier ones.
func TestSplit(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	path := groupLink.FindStringSubmatch(list)[1]
	shows(t, pages, path, "Split off errors like this one")
	_, page := get(pages, path)
	hash := regexp.MustCompile(`name="hash" value="([0-9a-f]{32})"`).FindStringSubmatch(page)[1]
	if status, leads := post(pages, path+"/decide", url.Values{"do": {"split"}, "hash": {hash}}); status != 303 {
		t.Errorf("splitting: %d %s", status, leads)
	}
	shows(t, pages, path, "split errors off, as another group from then on")
	_, beta := get(pages, "/console/errors?q=beta")
	if path = groupLink.FindStringSubmatch(beta)[1]; strings.Contains(second(get(pages, path)), "Split off") {
		t.Error("a group with one sample can be split")
	}
	if status, page := post(pages, path+"/decide", url.Values{"do": {"split"}, "hash": {hash}}); status != 422 || !strings.Contains(page, "no sample") {
		t.Errorf("of another group: %d %s", status, page)
	}
}

func second(_ int, page string) string { return page }
