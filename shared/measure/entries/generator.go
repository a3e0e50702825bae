package entries

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// StampForm is that of timestamps.
const StampForm = "2006-01-02T15:04:05.000Z"

// A Generator makes entries. The same seed makes the same ones, but for
// their times. It is for one goroutine, and cheap: what is measured shares
// the processor with it.
type Generator struct {
	Errors int // how many entries so far had an error with a stack trace

	random *rand.Rand
	traces [openTraces]trace
	second int64
	stamp  []byte // of the second

	// of the entry, the same wherever its template names them
	trace       *trace
	ms, product int
}

// New makes a generator.
func New(seed uint64) *Generator {
	g := &Generator{random: rand.New(rand.NewPCG(seed, seed)), second: -1}
	for i := range g.traces {
		g.traces[i].renew(g.random)
	}
	return g
}

// Append appends an entry, as compact JSON.
func (g *Generator) Append(dst []byte, at time.Time) []byte {
	return g.append(dst, at, compiled.all[g.random.IntN(len(compiled.all))])
}

// AppendError appends an entry with an error.
func (g *Generator) AppendError(dst []byte, at time.Time) []byte {
	return g.append(dst, at, compiled.failed[g.random.IntN(len(compiled.failed))])
}

// AppendBody appends the body of a post: entries with a step between their
// times. The last one has an error, so that a look at groups finds
// something of each body.
func (g *Generator) AppendBody(dst []byte, entries int, at time.Time, step time.Duration) []byte {
	dst = append(dst, `{"logs":[`...)
	for ; entries > 1; entries-- {
		dst, at = append(g.Append(dst, at), ','), at.Add(step)
	}
	return append(g.AppendError(dst, at), "]}"...)
}

func (g *Generator) append(dst []byte, at time.Time, l *template) []byte {
	if l.failed {
		g.Errors++
	}
	g.trace, g.ms, g.product = &g.traces[g.random.IntN(openTraces)], 1+int(g.random.ExpFloat64()*40), 10_000+g.random.IntN(90_000)
	if g.random.IntN(entriesOfTrace) == 0 {
		g.trace.renew(g.random)
	}
	dst = g.appendStamp(append(dst, `{"timestamp":"`...), at)
	for i := range l.parts {
		p := &l.parts[i]
		dst = p.value(append(dst, p.literal...), g, p)
	}
	return dst
}

// appendStamp is AppendFormat, which takes as long as all the rest.
func (g *Generator) appendStamp(dst []byte, at time.Time) []byte {
	if second := at.Unix(); second != g.second {
		g.second, g.stamp = second, at.UTC().AppendFormat(g.stamp[:0], "2006-01-02T15:04:05.")
	}
	ms := at.Nanosecond() / int(time.Millisecond)
	return append(append(dst, g.stamp...), byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// A trace is a customer's order on its way through the services.
type trace struct {
	id    [32]byte
	user  uint64
	order int
	from  int // its host
}

const (
	openTraces     = 128
	entriesOfTrace = 8 // on average
)

func (t *trace) renew(random *rand.Rand) {
	hex(t.id[:16], random.Uint64())
	hex(t.id[16:], random.Uint64())
	t.user, t.order, t.from = 1<<20+random.Uint64N(1<<20), 1_000_000+random.IntN(9_000_000), random.IntN(1<<16)
}

// hex fills dst with digits.
func hex(dst []byte, bits uint64) {
	for i := range dst {
		dst[i] = "0123456789abcdef"[bits>>(4*i)&15]
	}
}

// A template is a line, parsed.
type template struct {
	parts  []part
	failed bool
}

// A part is fixed text and what follows it.
type part struct {
	literal    string
	value      func(dst []byte, g *Generator, p *part) []byte
	low, width int
	from       []string
}

// compiled are the templates, each as often as its share says.
var compiled = compile()

func compile() (all struct{ all, failed []*template }) {
	for _, s := range shop {
		for _, l := range s.lines {
			t := &template{parts: parse(s.text(l)), failed: l.failure != nil}
			for range l.share {
				all.all = append(all.all, t)
				if t.failed {
					all.failed = append(all.failed, t)
				}
			}
		}
	}
	return all
}

// text is a line's template behind the timestamp.
func (s service) text(l line) string {
	var text strings.Builder
	fmt.Fprintf(&text, `","level":"%s","message":"%s","metadata":{"service":"%s","host":"%s-{1~%d}","trace_id":"{trace}"`,
		l.level, l.message, s.name, s.name, s.hosts-1)
	if l.fields != "" {
		text.WriteString("," + l.fields)
	}
	if l.failure == nil {
		text.WriteString(`,"region":"eu-central-1","version":"2026.11.3"`)
	}
	text.WriteString("}")
	if f := l.failure; f != nil {
		fmt.Fprintf(&text, `,"error":{"type":"%s","message":"%s","stack_trace":["%s"]}`, f.kind, f.message, strings.Join(f.frames, `","`))
	}
	text.WriteString("}")
	return text.String()
}

// placeholder is a name of kinds, or {40~9} for a number from 40 to 49.
var placeholder = regexp.MustCompile(`\{([a-z]+|\d+~\d+)\}`)

// kinds are what placeholders stand for.
var kinds = map[string]func(dst []byte, g *Generator, p *part) []byte{ // bounded by this list
	"trace": func(dst []byte, g *Generator, _ *part) []byte { return append(dst, g.trace.id[:]...) },
	"user": func(dst []byte, g *Generator, _ *part) []byte {
		return strconv.AppendUint(append(dst, "usr_"...), g.trace.user, 36)
	},
	"order": func(dst []byte, g *Generator, _ *part) []byte {
		return strconv.AppendInt(dst, int64(g.trace.order), 10)
	},
	"product": func(dst []byte, g *Generator, _ *part) []byte { return strconv.AppendInt(dst, int64(g.product), 10) },
	"ms":      func(dst []byte, g *Generator, _ *part) []byte { return strconv.AppendInt(dst, int64(g.ms), 10) },
	"hex": func(dst []byte, g *Generator, _ *part) []byte {
		var digits [8]byte
		hex(digits[:], g.random.Uint64())
		return append(dst, digits[:]...)
	},
	"client": func(dst []byte, g *Generator, _ *part) []byte {
		dst = strconv.AppendInt(append(dst, "203.0."...), int64(g.trace.from>>8), 10)
		return strconv.AppendInt(append(dst, '.'), int64(g.trace.from&0xff), 10)
	},
	"ip": func(dst []byte, g *Generator, _ *part) []byte {
		dst = strconv.AppendInt(append(dst, "10.1."...), int64(g.random.IntN(4)), 10)
		return strconv.AppendInt(append(dst, '.'), int64(1+g.random.IntN(254)), 10)
	},
}

func number(dst []byte, g *Generator, p *part) []byte {
	return strconv.AppendInt(dst, int64(p.low+g.random.IntN(p.width+1)), 10)
}

func pick(dst []byte, g *Generator, p *part) []byte {
	return append(dst, p.from[g.random.IntN(len(p.from))]...)
}

func nothing(dst []byte, _ *Generator, _ *part) []byte { return dst }

// lists are what placeholders are picked from.
var lists = map[string][]string{"agent": agents, "bank": banks, "term": terms} // bounded by this list

// parse finds the placeholders of a text; other braces stay.
func parse(text string) (parts []part) {
	begun := 0
	for _, at := range placeholder.FindAllStringIndex(text, -1) {
		name := text[at[0]+1 : at[1]-1]
		p := part{literal: text[begun:at[0]], value: kinds[name], from: lists[name]}
		switch {
		case p.from != nil:
			p.value = pick
		case p.value == nil:
			if n, _ := fmt.Sscanf(name, "%d~%d", &p.low, &p.width); n != 2 {
				continue // such as PHP's {main}
			}
			p.value = number
		}
		parts, begun = append(parts, p), at[1]
	}
	return append(parts, part{literal: text[begun:], value: nothing})
}
