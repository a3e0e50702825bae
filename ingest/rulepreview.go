package ingest

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of the examples of a preview.
const (
	MaxRuleExamples = 5       // of each kind
	maxExampleBytes = 2 << 10 // of a text
)

// A RulesPreview is what rules would do to entries.
type RulesPreview struct {
	Entries, Kept        int
	Bytes, Charged, Left int64 // as they are, and what would be charged and kept of them
	Oldest               time.Time
	Ruling               Ruling
	Rules                []RuleEffect
	Examples             []RuleExample
}

// A RuleEffect is how many entries a rule would leave out or change.
type RuleEffect struct {
	IngestRule
	Entries int
}

// A RuleExample is an entry before and after.
type RuleExample struct {
	Place         Place
	Before, After string // perhaps cut; After is empty where nothing is kept
	Lines         []int  // of the rules that do something to it
}

// A Previewer tries rules on entries.
type Previewer struct {
	set   *Ruleset
	ruler Ruler
	made  RulesPreview
	shown [ruleKinds]int
}

// NewPreviewer returns a Previewer of rules, which gives up when late says so.
func NewPreviewer(set *Ruleset, late func() bool) *Previewer {
	p := &Previewer{set: set}
	p.ruler.seeker.late = late
	for _, rule := range set.rules {
		p.made.Rules = append(p.made.Rules, RuleEffect{IngestRule: rule})
	}
	return p
}

// Add tries the rules on an entry, which stays as it is, unless it is late.
func (p *Previewer) Add(found *Found) (done bool) {
	kept, charged := p.ruler.judge(p.set, bytes.Clone(found.Text), found.Environment)
	if p.ruler.seeker.stopped || p.ruler.seeker.late() {
		return false
	}
	size := int64(len(found.Text))
	made := &p.made
	made.Entries, made.Bytes, made.Charged, made.Left = made.Entries+1, made.Bytes+size, made.Charged+charged, made.Left+int64(len(kept))
	if kept != nil {
		made.Kept++
	}
	if made.Oldest.IsZero() || found.ReceivedAt.Before(made.Oldest) {
		made.Oldest = found.ReceivedAt
	}
	made.Ruling.add(p.set, p.ruler.applied, size)
	show := false
	var lines []int
	for _, i := range p.ruler.applied {
		made.Rules[i].Entries++
		lines = append(lines, p.set.rules[i].Line)
		if kind := p.set.rules[i].Kind; p.shown[kind] < MaxRuleExamples {
			p.shown[kind], show = p.shown[kind]+1, true
		}
	}
	if show {
		made.Examples = append(made.Examples, RuleExample{Place: found.Place, Before: exampleText(found.Text), After: exampleText(kept), Lines: lines})
	}
	return true
}

// exampleText is the beginning of a text.
func exampleText(text []byte) string {
	if len(text) <= maxExampleBytes {
		return string(text)
	}
	end := maxExampleBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimSpace(string(text[:end])) + "…"
}

// Preview returns what the rules would do to the entries that were added.
func (p *Previewer) Preview() RulesPreview { return p.made }
