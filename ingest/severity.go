package ingest

// A Severity is the level of an entry. Severities are ordered.
type Severity uint8

// The five severities. SeverityNone is that of an entry
// without a valid one.
const (
	SeverityNone Severity = iota
	SeverityDebug
	SeverityInfo
	SeverityWarn
	SeverityError
	SeverityFatal
)

// ParseSeverity accepts exactly the five lower-case words.
func ParseSeverity(text []byte) (Severity, bool) {
	switch string(text) {
	case "debug":
		return SeverityDebug, true
	case "info":
		return SeverityInfo, true
	case "warn":
		return SeverityWarn, true
	case "error":
		return SeverityError, true
	case "fatal":
		return SeverityFatal, true
	}
	return SeverityNone, false
}

// String is the level, or "none".
func (s Severity) String() string {
	if s > SeverityFatal {
		s = SeverityNone
	}
	return [...]string{"none", "debug", "info", "warn", "error", "fatal"}[s]
}

// A SeveritySet is a set of severities; the empty set means all.
type SeveritySet uint8

// With returns the set with one more.
func (s SeveritySet) With(one Severity) SeveritySet { return s | 1<<one }

// Has reports whether one is in the set, or the set is empty.
func (s SeveritySet) Has(one Severity) bool { return s == 0 || s&(1<<one) != 0 }
