package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/former"
)

type compare struct{}

// Help implements kong.HelpProvider.
func (compare) Help() string {
	return `Each line of standard input is an entry as clients send it, or the error of one: those of the last days, of one project. It shows what
this version would make of them before it goes live. Groups that exist inherit what is joined and split; see decision 26.

    jq -c '.items[]' entries.json | grouping compare`
}

// Run prints to standard output. It needs neither database nor broker.
func (compare) Run() error { return printComparison(os.Stdin, os.Stdout) }

func printComparison(in io.Reader, out io.Writer) error {
	c := comparison{before: map[grouping.Hash]*kind{}, now: map[grouping.Hash]*kind{}}
	if err := eachError(in, c.add); err != nil {
		return err
	}
	joined, split := withSeveralOthers(c.now), withSeveralOthers(c.before)
	fmt.Fprintf(out, "%d errors: %d groups before, %d now; %d of now join several of before, %d of before are split\n",
		c.errors, len(c.before), len(c.now), len(joined), len(split))
	printKinds(out, "joins", joined)
	printKinds(out, "splits", split)
	return nil
}

// comparison is which groups of two versions share errors.
type comparison struct {
	today       grouping.Grouper
	former      former.Grouper
	before, now map[grouping.Hash]*kind
	errors      int
}

// kind is a group of one version, and how many
// errors it shares with each group of the other.
type kind struct {
	title  string
	others map[grouping.Hash]*shared // bounded by the errors that are compared
}

type shared struct {
	title  string
	errors int
}

func (c *comparison) add(_ int, e grouping.Error) error {
	old := c.former.Hashes(e, grouping.Version-1)
	today := c.today.Fingerprint(e)
	before, now, title := old[len(old)-1].Hash, today.Deciding().Hash, today.Describe().Title
	countShared(c.before, before, now, title)
	countShared(c.now, now, before, title)
	c.errors++
	return nil
}

func countShared(kinds map[grouping.Hash]*kind, hash, other grouping.Hash, title string) {
	k, ok := kinds[hash]
	if !ok {
		k = &kind{title, map[grouping.Hash]*shared{}}
		kinds[hash] = k
	}
	if k.others[other] == nil {
		k.others[other] = &shared{title: title}
	}
	k.others[other].errors++
}

// withSeveralOthers are the groups that share errors with
// several of the other version, those with most first.
func withSeveralOthers(kinds map[grouping.Hash]*kind) (found []*kind) {
	for _, k := range kinds {
		if len(k.others) > 1 {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(len(b.others), len(a.others)), cmp.Compare(a.title, b.title))
	})
	return found
}

func printKinds(out io.Writer, verb string, kinds []*kind) {
	for _, k := range kinds {
		fmt.Fprintf(out, "\n%s %d: %s\n", verb, len(k.others), k.title)
		others := make([]*shared, 0, len(k.others))
		for _, other := range k.others {
			others = append(others, other)
		}
		slices.SortFunc(others, func(a, b *shared) int { return cmp.Or(cmp.Compare(b.errors, a.errors), cmp.Compare(a.title, b.title)) })
		for _, other := range others {
			fmt.Fprintf(out, "  %d errors like: %s\n", other.errors, other.title)
		}
	}
}
