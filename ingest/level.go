package ingest

// Level is an entry's severity. Levels order by severity.
type Level uint8

// The five levels. LevelNone is the level of an entry that has none that is valid.
const (
	LevelNone Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
	LevelFatal
)

// ParseLevel knows exactly the five lower-case words.
func ParseLevel(text []byte) (Level, bool) {
	switch string(text) {
	case "debug":
		return LevelDebug, true
	case "info":
		return LevelInfo, true
	case "warn":
		return LevelWarn, true
	case "error":
		return LevelError, true
	case "fatal":
		return LevelFatal, true
	}
	return LevelNone, false
}

// String is the level's word, or "none".
func (l Level) String() string {
	if l > LevelFatal {
		l = LevelNone
	}
	return [...]string{"none", "debug", "info", "warn", "error", "fatal"}[l]
}

// LevelSet is a set of levels; the empty set stands for every level.
type LevelSet uint8

// With is the set and l.
func (s LevelSet) With(l Level) LevelSet { return s | 1<<l }

// Has tells whether l is one of the set, or the set is empty.
func (s LevelSet) Has(l Level) bool { return s == 0 || s&(1<<l) != 0 }
