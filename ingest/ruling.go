package ingest

import (
	"math/bits"
	"slices"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// A Ruling is what rules did to entries.
type Ruling struct {
	Entries [ruleKinds]int64 // dropped, or changed; one that several kinds change counts for each
	Bytes   [ruleKinds]int64 // of those, as they were sent
}

// A Ruler applies rules, to one batch at a time, and reuses its memory.
type Ruler struct {
	seeker      seeker
	stored      Stored
	environment string // of an entry that named one
	grown       []byte // an entry that is longer than it was
	applied     []int  // indexes of the rules that did something to the entry
}

// Apply applies rules to a batch of a key's environment, whose entries are then
// those that are kept. It needs more memory only where entries outgrow what was
// left out before them. It gives up, and leaves the batch in pieces, when late
// says so.
func (r *Ruler) Apply(set *Ruleset, batch *Batch, environment string, late func() bool) (ruling Ruling, done bool) {
	lines, inPlace := batch.Lines, true
	kept, accepted, start := lines[:0], batch.Accepted[:0], 0
	batch.Bytes, batch.Apart = 0, 0
	r.seeker.late, r.seeker.stopped = late, false
	for _, line := range batch.Accepted {
		sent := lines[start : line.End-1]
		start = line.End
		text, charged := r.judge(set, sent, environment)
		if r.seeker.stopped || late() {
			return ruling, false
		}
		ruling.add(set, r.applied, int64(len(sent)))
		batch.Bytes += charged
		if text == nil {
			batch.Apart += charged
			continue
		}
		if inPlace && len(kept)+len(text)+1 > start {
			kept, inPlace = append(make([]byte, 0, len(lines)+len(batch.Accepted)), kept...), false // a level grows by one byte
		}
		kept = append(append(kept, text...), '\n')
		accepted = append(accepted, Line{End: len(kept), HasError: line.HasError, Beyond: int32(charged - int64(len(text)))})
	}
	batch.LeftOut = len(batch.Accepted) - len(accepted)
	batch.Lines, batch.Accepted = kept, accepted
	return ruling, true
}

func (r *Ruling) add(set *Ruleset, applied []int, bytes int64) {
	kinds := uint(0)
	for _, i := range applied {
		kinds |= 1 << set.rules[i].Kind
	}
	for ; kinds != 0; kinds &= kinds - 1 {
		kind := bits.TrailingZeros(kinds)
		r.Entries[kind], r.Bytes[kind] = r.Entries[kind]+1, r.Bytes[kind]+bytes
	}
}

// judge returns what is kept of an entry, nil: nothing, and what it is charged.
// It may overwrite the entry, and what is kept is valid until the next one.
func (r *Ruler) judge(set *Ruleset, text []byte, environment string) (kept []byte, charged int64) {
	r.read(set, text, environment)
	for i := range set.rules {
		if i == set.afterCharge {
			charged = int64(len(r.stored.Text))
		}
		rule := &set.rules[i]
		if !rule.when.Matches(&r.stored) || !r.apply(rule) {
			continue
		}
		r.applied = append(r.applied, i)
		if rule.Kind == RuleDrop || rule.Kind == RuleSample {
			return nil, charged
		}
	}
	if set.afterCharge == len(set.rules) {
		charged = int64(len(r.stored.Text))
	}
	return r.stored.Text, charged
}

// read reads what conditions ask of an entry.
func (r *Ruler) read(set *Ruleset, text []byte, environment string) {
	r.applied, r.stored.Text, r.stored.Environment = r.applied[:0], text, environment
	members(text, func(name, value []byte) bool {
		switch string(decodedString(name)) {
		case entryfield.Level:
			r.stored.Level, _ = ParseSeverity(decodedString(value))
			return !set.byEnvironment
		case entryfield.Environment:
			if own := decodedString(value); set.byEnvironment && value[0] == '"' && len(own) > 0 {
				if r.environment != string(own) { // mostly that of the entry before
					r.environment = string(own)
				}
				r.stored.Environment = r.environment
			}
		}
		return false
	})
}

// apply reports whether a rule does something to an entry that it is about.
func (r *Ruler) apply(rule *IngestRule) (does bool) {
	switch rule.Kind {
	case RuleSample:
		return !rule.keeps(r.stored.Text)
	case RuleRedact:
		r.stored.Text, does = r.seeker.redact(rule, r.stored.Text)
		return does
	case RuleSetLevel:
		return r.setLevel(rule.level)
	}
	return true
}

// keeps decides by a hash of the first value at a path, else of the whole
// entry: FNV-1a of 64 bits, and the last step of MurmurHash3 for its high bits.
// So entries of one value stay or go together, in all replicas.
func (r *IngestRule) keeps(text []byte) bool {
	sum := hashText(text)
	for _, path := range r.paths {
		found := path.find(text, func(value []byte) bool {
			if value[0] == '{' || value[0] == '[' || string(value) == "null" {
				return false
			}
			sum = hashText(textOf(value))
			return true
		})
		if found {
			break
		}
	}
	return float64(sum>>11)/(1<<53) < r.rate
}

func hashText(text []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, c := range text {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	sum = (sum ^ sum>>33) * 0xff51afd7ed558ccd
	sum = (sum ^ sum>>33) * 0xc4ceb9fe1a85ec53
	return sum ^ sum>>33
}

// setLevel writes another level into the entry.
func (r *Ruler) setLevel(level Severity) bool {
	text := r.stored.Text
	if r.stored.Level == level {
		return false
	}
	members(text, func(name, value []byte) bool {
		if string(decodedString(name)) != entryfield.Level {
			return false
		}
		start, end := cap(text)-cap(value)+1, cap(text)-cap(value)+len(value)-1
		word := level.String()
		if len(word) <= end-start {
			kept := start + copy(text[start:], word)
			r.stored.Text = text[:kept+copy(text[kept:], text[end:])]
		} else {
			r.grown = slices.Replace(append(r.grown[:0], text...), start, end, []byte(word)...)
			r.stored.Text = r.grown
		}
		return true
	})
	r.stored.Level = level
	return true
}
