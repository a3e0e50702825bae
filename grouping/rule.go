package grouping

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of the rules of a project. Together they keep what rules cost an error small.
const (
	maxRuleName   = 100  // characters
	maxRuleText   = 200  // bytes of a glob, a text or an expression
	maxTerms      = 10   // of a rule
	maxAllTerms   = 150  // of all rules
	maxStars      = 5    // of a condition
	maxParts      = 10   // of a rule
	maxRulePaths  = 10   // in metadata, of all rules
	maxExpression = 100  // steps of all expressions as regexp compiles them: a byte costs each step some nanoseconds
	maxScrubbed   = 1000 // bytes of a message that are scrubbed, and so all that is left of it
	maxScrubs     = 2000 // bytes of all messages of an error
	maxMatched    = 300  // bytes of a text that globs are compared with
	maxSpans      = 10   // exceptions of a chain that rules look at, from the root cause on
	maxJudged     = 120  // frames of an error, so: all that count of two exceptions
	maxShownRule  = 200  // bytes of a rule that are shown as a reason
)

// RuleKind is what a rule does.
type RuleKind string

// The kinds.
const (
	OwnRule     RuleKind = "own"     // frames are the project's own code
	LibraryRule RuleKind = "library" // frames are not
	IgnoreRule  RuleKind = "ignore"  // frames do not count
	SameRule    RuleKind = "same"    // errors are one group
	GroupRule   RuleKind = "group"   // errors are grouped by parts
	ScrubRule   RuleKind = "scrub"   // what messages must not hold
)

// RulesSet is the event that somebody set the rules of a project.
type RulesSet struct {
	At       time.Time `json:"at"`
	Since    time.Time `json:"since"` // they hold for errors accepted from then on
	Text     string    `json:"text"`
	Note     string    `json:"note,omitempty"`
	Restored int64     `json:"restored,omitempty"` // the version that they are those of
}

// A Ruleset is the rules of a project, as somebody wrote them: one a line,
// of which the first that matches decides. Nothing changes it.
type Ruleset struct {
	Version int64
	Text    string
	Paths   []string // in metadata, that rules ask for

	rules  []projectRule
	frames []int // indexes of the rules about frames, in order; the next ones of others
	errors []int
	scrubs []int
	terms  int // of all rules
}

// A projectRule is one line.
type projectRule struct {
	kind RuleKind
	name string   // of the group of a SameRule
	text string   // the line
	of   []term   // of the error
	in   []term   // of a frame
	by   []byPart // of a GroupRule
	what *regexp.Regexp
	may  func(text string) bool // it may match; nil: it may
	with string
}

// field is what a term or a part is about.
type field string

// The fields. Of metadata the path follows.
const (
	fieldType        field = "type"
	fieldMessage     field = "message"
	fieldFunction    field = "function"
	fieldModule      field = "module"
	fieldPath        field = "path"
	fieldService     field = "service"
	fieldEnvironment field = "environment"
	fieldDefault     field = "default" // of a part: what would count without rules
	fieldText        field = ""        // of a part: a text that somebody wrote
	fieldMetadata    field = "metadata."
)

func (f field) ofFrame() bool { return f == fieldFunction || f == fieldModule || f == fieldPath }

// path is that in metadata.
func (f field) path() (path string, is bool) {
	return strings.CutPrefix(string(f), string(fieldMetadata))
}

// A term is a condition.
type term struct {
	field field
	not   bool
	glob  glob
}

// A byPart is one thing by which errors are compared.
type byPart struct {
	field field
	text  string // of fieldText
}

// Empty reports whether there are no rules. There are none of nil.
func (r *Ruleset) Empty() bool { return r == nil || len(r.rules) == 0 }

// A RuleVersion is the rules of a project from a time on.
type RuleVersion struct {
	Version int64
	Since   time.Time
}

// formerRulesKept is for how long groups are also found by former
// rules, and maxFormerRules how many of these are looked at.
const (
	formerRulesKept = 30 * 24 * time.Hour
	maxFormerRules  = 5
)

// RuleHistory are the versions of a project's rules, the first one first.
type RuleHistory []RuleVersion

// At is the version that holds for an error that was accepted at a time; 0:
// none does. For one from before the oldest version that is kept, that does.
func (h RuleHistory) At(accepted time.Time) int64 {
	for _, v := range slices.Backward(h) {
		if !v.Since.After(accepted) {
			return v.Version
		}
	}
	if len(h) > 0 && h[0].Version > 1 {
		return h[0].Version
	}
	return 0
}

// Former are the versions that held before one, the last one first, as far as groups are found by them; 0: there were no rules.
func (h RuleHistory) Former(version int64, accepted time.Time) (former []int64) {
	for i, v := range slices.Backward(h) {
		switch {
		case v.Version > version:
			continue
		case len(former) == maxFormerRules || accepted.After(v.Since.Add(formerRulesKept)):
			return former
		case i > 0:
			former = append(former, h[i-1].Version)
		case v.Version == 1:
			former = append(former, 0)
		}
	}
	return former
}

// Len is how many rules there are.
func (r *Ruleset) Len() int { return len(r.rules) }

// Says is the rule with a number, as it was written; "": there is none.
func (r *Ruleset) Says(number uint8) string {
	if r == nil || number == 0 || int(number) > len(r.rules) {
		return ""
	}
	return r.rules[number-1].text
}

// Scrub replaces in a text what must not be kept, and cuts it.
func (r *Ruleset) Scrub(text string) string {
	if r == nil || len(r.scrubs) == 0 {
		return text
	}
	text, _ = r.scrub(text, maxScrubbed)
	return text
}

// scrub also returns which rules replaced something, as bits.
func (r *Ruleset) scrub(text string, most int) (scrubbed string, used uint64) {
	if scrubbed = trace.Clip(text, most); len(scrubbed) < len(text) { // no part of what is to be scrubbed stays at the end
		scrubbed = scrubbed[:max(0, strings.LastIndexByte(scrubbed, ' '))]
	}
	for _, i := range r.scrubs {
		rule := &r.rules[i]
		if rule.may != nil && !rule.may(scrubbed) || !rule.what.MatchString(scrubbed) { // which copies nothing
			continue
		}
		scrubbed, used = rule.what.ReplaceAllLiteralString(scrubbed, rule.with), used|1<<i
	}
	return scrubbed, used
}

// An EntryContext is what rules ask of an entry beside its error.
type EntryContext struct {
	Service     string
	Environment string
	Metadata    map[string]string // by Ruleset.Paths, each with its value; bounded by these
}

// value is that of a field. Of a sample it may not be known.
func (c *EntryContext) value(of field) (value string, known bool) {
	if c == nil {
		return "", false
	}
	switch of {
	case fieldService:
		return c.Service, true
	case fieldEnvironment:
		return c.Environment, true
	}
	path, _ := of.path()
	value, known = c.Metadata[path]
	return value, known
}
