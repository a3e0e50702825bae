package ingest

import (
	"regexp"
	"strings"
	"time"
)

// SampleBytes is how much of a rejected entry is kept as a sample.
const SampleBytes = 1 << 10

// sampleMargin is how much more of a text is read, on each side, so that a
// key at the cut is still seen as one.
const sampleMargin = 64

// SamplesOfCode is how many samples a body gives for each code.
const SamplesOfCode = 3

// A Rejection is how many entries were rejected for a code, or how many
// bodies if it is of a whole body, with samples.
type Rejection struct {
	Code    Code
	Entries int64
	Samples []Sample

	last int // the entry that was counted last
}

// A Sample is something that was rejected, and why.
type Sample struct {
	Pointer, Detail, Fix string // see Fault
	Text                 []byte // the beginning of the entry, or the body around the fault; nil: it is not known
	Cut                  bool   // there is more than Text
}

// Kept is the sample as it may be kept and shown.
func (s *Sample) Kept(at time.Time) RejectedSample {
	return RejectedSample{
		At: at, Pointer: presentable([]byte(s.Pointer)), Detail: presentable([]byte(s.Detail)), Fix: presentable([]byte(s.Fix)),
		Text: presentable(s.Text), Cut: s.Cut,
	}
}

// presentable is the beginning of a text without credentials, in UTF-8, and
// without U+0000, which PostgreSQL does not store.
func presentable(text []byte) string {
	const unknown = "\ufffd"
	shown := strings.ReplaceAll(strings.ToValidUTF8(string(hideCredentials(text)), unknown), "\x00", unknown)
	if len(shown) > SampleBytes {
		shown = strings.ToValidUTF8(shown[:SampleBytes], "")
	}
	return shown
}

var credential = regexp.MustCompile(`weir[a-z]*_[0-9a-f]{8,}`)

// hideCredentials hides what may be one, also a part of it: a body can have
// the API key, and a fault quotes what was sent.
func hideCredentials(text []byte) []byte {
	return credential.ReplaceAllLiteral(text, []byte("weir_…"))
}

// BeginningOf returns the beginning of a rejected text, and whether it is cut.
func BeginningOf(text []byte) (beginning []byte, cut bool) {
	return text[:min(len(text), SampleBytes+sampleMargin)], len(text) > SampleBytes
}

// rejections are what was wrong with a body's entries. They are bounded by the
// codes, and reuse their memory.
type rejections struct {
	list []Rejection
	text []byte // of the samples
}

func (r *rejections) reset() { r.list, r.text = r.list[:0], r.text[:0] }

// count counts an entry once for each code. It returns nil where no sample of
// the entry is needed.
func (r *rejections) count(code Code, index int) *Rejection {
	of := r.of(code)
	if of.last == index {
		return nil
	}
	of.last = index
	if of.Entries++; of.Entries > SamplesOfCode {
		return nil
	}
	return of
}

func (r *rejections) of(code Code) *Rejection {
	for i := range r.list {
		if r.list[i].Code == code {
			return &r.list[i]
		}
	}
	r.list = append(r.list, Rejection{Code: code, last: -1})
	return &r.list[len(r.list)-1]
}

// illustrate gives the samples of an entry its text, which is about to be
// overwritten.
func (r *rejections) illustrate(index int, entry []byte) {
	text, cut := []byte(nil), false
	for i := range r.list {
		of := &r.list[i]
		if of.last != index || of.Entries > SamplesOfCode {
			continue
		}
		if text == nil {
			text, cut = r.keep(entry)
		}
		newest := &of.Samples[len(of.Samples)-1]
		newest.Text, newest.Cut = text, cut
	}
}

// keep copies the beginning of an entry.
func (r *rejections) keep(entry []byte) (text []byte, cut bool) {
	beginning, cut := BeginningOf(entry)
	start := len(r.text)
	r.text = append(r.text, beginning...)
	return r.text[start:len(r.text):len(r.text)], cut
}

// Rejected is what was rejected of an API key for a code.
type Rejected struct {
	Organization, Project, Key string
	Code                       Code
	Entries                    int64 // see Rejection
	LastAt                     time.Time
	Samples                    []RejectedSample
}

// A RejectedSample is a Sample that is kept.
type RejectedSample struct {
	At                   time.Time
	Pointer, Detail, Fix string // see Fault
	Text                 string
	Cut                  bool
}
