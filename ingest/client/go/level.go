package weir

import "log/slog"

// LevelFatal is the level of slog that Weir calls fatal.
const LevelFatal = slog.LevelError + 4

// Weir's levels, from the first that is dropped to the last.
const (
	levelDebug = iota
	levelInfo
	levelWarn
	levelError
	levelFatal
	levels // how many
)

var levelNames = [levels]string{"debug", "info", "warn", "error", "fatal"}

// levelOf maps by ranges: what is between two levels of slog is the lower.
func levelOf(l slog.Level) int {
	switch {
	case l < slog.LevelInfo:
		return levelDebug
	case l < slog.LevelWarn:
		return levelInfo
	case l < slog.LevelError:
		return levelWarn
	case l < LevelFatal:
		return levelError
	}
	return levelFatal
}
