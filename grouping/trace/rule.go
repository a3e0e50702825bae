package trace

// Rules are what people say of a project's errors.
type Rules interface {
	// Open begins an error. It may change the messages of its exceptions.
	Open(spans []Span, frames []Frame)
	// Judge says what a frame is, and the number of the rule that does.
	Judge(f *Frame) (v Verdict, rule uint8)
}

// Verdict is what rules say of a frame.
type Verdict uint8

// The verdicts.
const (
	NotJudged Verdict = iota
	IsOwn
	IsLibrary
	IsIgnored // it counts as if it were absent
)

// Apply applies rules to errors that are read from now on; nil: none.
func (t *Trace) Apply(rules Rules) { t.rules = rules }

// rule has the project's rules judge the frames of an exception that count.
func (t *Trace) rule(s Span) {
	for i := s.First; i < s.End; i++ {
		if s.IsMiddle(i) {
			continue
		}
		f := &t.frames[i]
		verdict, rule := t.rules.Judge(f)
		f.Rule = rule
		switch verdict {
		case NotJudged:
		case IsOwn:
			f.InApp = true
		case IsIgnored:
			t.idents[i] = ident{}
			f.InApp = false
		case IsLibrary:
			f.InApp = false
		}
	}
}
