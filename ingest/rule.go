package ingest

// Bounds of the rules of a project. Together they keep what rules cost an
// entry small.
const (
	maxRulePaths    = 10       // of a rule
	maxRulePatterns = 10       // of a rule
	maxExpressions  = 5        // of all rules
	maxExpression   = 200      // bytes of one
	maxSteps        = 150      // of all expressions, as regexp compiles them: a byte costs each step some nanoseconds
	maxFinds        = 50       // of an expression in a text: with more, all of the text goes
	maxReread       = 64 << 10 // bytes: of a long text that many finds would read again, it goes earlier
)

// A RuleKind is what a rule does.
type RuleKind uint8

// The kinds.
const (
	RuleDrop RuleKind = iota
	RuleSample
	RuleRedact
	RuleSetLevel
	ruleKinds
)

// String is the word of the kind in metrics and outcomes.
func (k RuleKind) String() string { return [...]string{"drop", "sample", "redact", "set_level"}[k] }

// An IngestRule is one line of the rules of a project.
type IngestRule struct {
	Kind        RuleKind
	Line        int    // from 1
	Text        string // as it was written
	AfterCharge bool   // it changes what is kept, and not what is charged

	when  Query
	rate  float64    // of a sample: the part that is kept
	paths []jsonPath // of a sample: where its value is; of a redaction: where it looks, nil: everywhere
	what  []redactor
	named bool // of a redaction: values of fields with a secret's name go, too
	level Severity
}

// A Ruleset is the rules of a project. Nothing changes it.
type Ruleset struct {
	Text string

	rules         []IngestRule // those before the charge first
	afterCharge   int          // index of the first one after it
	byEnvironment bool         // a condition asks for the environment
	steps         int          // of all expressions
	expressions   int
}

// Rules returns the rules in the order in which they apply.
func (s *Ruleset) Rules() []IngestRule { return s.rules }
