package grouping

import (
	"strconv"

	"github.com/weirlog/weir/grouping/trace"
)

// A ruling applies the rules of a project to one error after another.
type ruling struct {
	set     *Ruleset // nil: there are none
	context *EntryContext
	applies uint64       // frame rules that are about errors like this one, as bits
	used    uint64       // rules that changed something, as bits
	judged  int          // frames so far
	missed  bool         // a value was asked for that is not known
	of      *trace.Frame // whose name this is, with its module
	name    string
	decides *projectRule // of which group the error is; nil: none does
	values  []string     // of the parts of such a rule
}

// Open scrubs the messages of an error, and finds the rules about its frames.
func (r *ruling) Open(spans []trace.Span, _ []trace.Frame) {
	r.applies, r.used, r.missed, r.judged, r.of = 0, 0, false, 0, nil
	left := maxScrubs
	for i := range spans {
		if s := &spans[i]; len(r.set.scrubs) > 0 && s.Message != "" {
			before := s.Message
			var used uint64
			s.Message, used = r.set.scrub(before, min(maxScrubbed, left))
			left -= min(len(before), maxScrubbed, left)
			r.used |= used
		}
	}
	for _, i := range r.set.frames {
		if r.isAbout(r.set.rules[i].of, spans) {
			r.applies |= 1 << i
		}
	}
}

// Judge says what a frame is, by the first rule about it.
func (r *ruling) Judge(f *trace.Frame) (v trace.Verdict, number uint8) {
	if r.judged++; r.judged > maxJudged {
		return trace.NotJudged, 0
	}
	for _, i := range r.set.frames {
		if r.applies&(1<<i) == 0 || !r.isIn(r.set.rules[i].in, f) {
			continue
		}
		r.used |= 1 << i
		switch r.set.rules[i].kind {
		case OwnRule:
			v = trace.IsOwn
		case LibraryRule:
			v = trace.IsLibrary
		default:
			v = trace.IsIgnored
		}
		return v, uint8(i + 1) //nolint:gosec // there are line.MaxRules at most
	}
	return trace.NotJudged, 0
}

// decide finds the first rule that says of which group an error is.
func (r *ruling) decide(t *trace.Trace) {
	if r.decides, r.values = nil, r.values[:0]; r.set == nil {
		return
	}
	for _, i := range r.set.errors {
		rule := &r.set.rules[i]
		if r.goesThrough(rule.in, t.Frames()) && r.isAbout(rule.of, t.Spans()) {
			r.used |= 1 << i
			r.decides = rule
			return
		}
	}
}

// isAbout reports whether an error is as terms say: one exception
// of the chain has the type and the message, and none what they exclude.
func (r *ruling) isAbout(terms []term, spans []trace.Span) bool {
	ofSpans := false
	for i := range terms {
		switch t := &terms[i]; t.field {
		case fieldService, fieldEnvironment:
			if !r.isOfEntry(t) {
				return false
			}
		case fieldType, fieldMessage:
			if ofSpans = ofSpans || !t.not; t.not && anySpan(spans, terms[i:i+1]) {
				return false
			}
		}
	}
	if ofSpans && !anySpan(spans, terms) {
		return false
	}
	for i := range terms { // metadata is last, as a sample may not have it
		if _, is := terms[i].field.path(); is && !r.isOfEntry(&terms[i]) {
			return false
		}
	}
	return true
}

func (r *ruling) isOfEntry(t *term) bool { return t.glob.matches(r.value(t.field)) != t.not }

// value is what the entry of an error has.
func (r *ruling) value(of field) string {
	value, known := r.context.value(of)
	r.missed = r.missed || !known
	return trace.Clip(value, maxMatched)
}

// anySpan reports whether an exception matches all terms about it. Those
// that exclude something only count if they are alone.
func anySpan(spans []trace.Span, terms []term) bool {
	for i := range spans[:min(len(spans), maxSpans)] {
		matches := true
		for k := range terms {
			t := &terms[k]
			if t.not && len(terms) > 1 {
				continue
			}
			switch t.field {
			case fieldType:
				matches = matches && t.glob.matches(trace.Clip(spans[i].Type, maxMatched))
			case fieldMessage:
				matches = matches && t.glob.matches(trace.Clip(spans[i].Message, maxMatched))
			}
		}
		if matches {
			return true
		}
	}
	return false
}

// goesThrough reports whether one frame is as terms
// say, and none is what they exclude.
func (r *ruling) goesThrough(terms []term, frames []trace.Frame) bool {
	if len(terms) == 0 {
		return true
	}
	wanted, found := false, false
	for k := range terms {
		wanted = wanted || !terms[k].not
	}
	for i := range frames[:min(len(frames), maxJudged)] {
		through := true
		for k := range terms {
			matches := r.frameIs(&terms[k], &frames[i])
			if terms[k].not && matches {
				return false
			}
			through = through && (terms[k].not || matches)
		}
		found = found || through
	}
	return found || !wanted
}

// isIn reports whether a frame is as all terms say.
func (r *ruling) isIn(terms []term, f *trace.Frame) bool {
	for k := range terms {
		if r.frameIs(&terms[k], f) == terms[k].not {
			return false
		}
	}
	return true
}

func (r *ruling) frameIs(t *term, f *trace.Frame) bool {
	switch t.field {
	case fieldModule:
		return t.glob.matches(trace.Clip(f.Module, maxMatched))
	case fieldPath:
		return t.glob.matchesPath(f.File)
	}
	if t.glob.matches(trace.Clip(f.Function, maxMatched)) {
		return true
	}
	return f.Module != "" && f.Function != "" && t.glob.matches(r.nameOf(f))
}

// nameOf is a function with its module, as it is shown.
func (r *ruling) nameOf(f *trace.Frame) string {
	if r.of != f {
		r.of, r.name = f, trace.Clip(f.Module, maxMatched)+"."+trace.Clip(f.Function, maxMatched)
	}
	return r.name
}

// apply applies rules to the errors that are read from now on.
func (g *Grouper) apply(rules *Ruleset, context *EntryContext) {
	if rules.Empty() {
		g.ruling.set = nil
		g.trace.Apply(nil)
		return
	}
	g.ruling.set, g.ruling.context = rules, context
	g.trace.Apply(&g.ruling)
}

// hash is that of an error whose group a rule decides.
func (r *ruling) hash(natural Fingerprint) ScopedHash {
	g, rule := natural.grouper, r.decides
	if rule.kind == SameRule {
		g.key = appendSized(beginKey(g.key, ScopeRule), string(SameRule), rule.name)
		return hashOf(ScopeRule, g.key)
	}
	for i := range rule.by {
		r.values = append(r.values, r.valueOf(&rule.by[i], natural))
	}
	g.key = appendSized(beginKey(g.key, ScopeRule), string(GroupRule))
	for i, value := range r.values {
		g.key = appendSized(g.key, string(rule.by[i].field), value)
	}
	return hashOf(ScopeRule, g.key)
}

// appendSized appends texts so that others give another key.
func appendSized(key []byte, texts ...string) []byte {
	for _, text := range texts {
		key = append(append(strconv.AppendInt(key, int64(len(text)), 10), ':'), text...)
	}
	return key
}

// valueOf is what an error has of a part.
func (r *ruling) valueOf(of *byPart, natural Fingerprint) string {
	g := natural.grouper
	var innermost trace.Frame
	name := ""
	if site := g.trace.Site(); len(site) > 0 {
		innermost, name = g.trace.Frames()[site[0]], string(g.trace.Identity(site[0]))
	}
	switch of.field {
	case fieldDefault:
		return natural.natural().Hash.String()
	case fieldType:
		return string(g.kind)
	case fieldMessage:
		return string(g.message.AppendAll(nil))
	case fieldFunction:
		return name
	case fieldModule:
		return innermost.Module
	case fieldPath:
		return innermost.File
	case fieldText:
		return of.text
	}
	return r.value(of.field)
}

// explain says by which rule a group is one.
func (r *ruling) explain(why Explanation) Explanation {
	why.Rule = RuleSame
	why.Parts = appendPart(why.Parts, partRule, []byte(trace.Cut(r.decides.text, maxShownRule)))
	for i, value := range r.values {
		of := r.decides.by[i].field
		why.Rule = RuleGroup
		switch of {
		case fieldType, fieldMessage:
			why.Parts = appendPart(why.Parts, string(of), []byte(value))
		case fieldFunction:
			why.Parts = appendPart(why.Parts, "frame", []byte(value))
		case fieldText, fieldDefault:
		default:
			why.Parts = appendPart(why.Parts, "value", []byte(string(of)+": "+value))
		}
	}
	return why
}

// partRule is the kind of a part that is a rule.
const partRule = "rule"

// explainUsed adds the rules that changed how an error is compared.
func (r *ruling) explainUsed(why Explanation) Explanation {
	if r.set == nil {
		return why
	}
	for i := range r.set.rules {
		if rule := &r.set.rules[i]; r.used&(1<<i) != 0 && rule != r.decides {
			why.Parts = appendPart(why.Parts, partRule, []byte(trace.Cut(rule.text, maxShownRule)))
		}
	}
	return why
}
