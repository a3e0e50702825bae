package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"time"
)

// Instant is an event time to the nanosecond, in the years 0000
// to 9999, for which 64 bits are too few.
type Instant struct {
	Seconds int64  // since 1970-01-01T00:00:00Z, negative before
	Nanos   uint32 // 0..999,999,999, always forward from Seconds
}

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant {
	return Instant{Seconds: t.Unix(), Nanos: uint32(t.Nanosecond())}
}

// Time returns the instant in UTC.
func (t Instant) Time() time.Time { return time.Unix(t.Seconds, int64(t.Nanos)).UTC() }

// Compare orders instants: negative when t is before u.
func (t Instant) Compare(u Instant) int {
	return cmp.Or(cmp.Compare(t.Seconds, u.Seconds), cmp.Compare(t.Nanos, u.Nanos))
}

// The first and the last second that an Instant can have.
const (
	minSeconds = -62_167_219_200 // 0000-01-01T00:00:00Z
	maxSeconds = 253_402_300_799 // 9999-12-31T23:59:59Z
)

// Plus returns the instant some seconds later, at most the last one; earlier
// where they are negative.
func (t Instant) Plus(seconds int64) Instant {
	return Instant{Seconds: max(minSeconds, min(t.Seconds+seconds, maxSeconds)), Nanos: t.Nanos}
}

// ParseInstant reads an RFC 3339 time in UTC: YYYY-MM-DDTHH:MM:SS, an
// optional fraction of 1 to 9 digits, Z or +00:00. It must be on the
// calendar: no February 30, no hour 24, no second 60.
func ParseInstant(text []byte) (Instant, bool) {
	local, isUTC := cutUTC(text)
	if !isUTC || len(local) < len("2006-01-02T15:04:05") {
		return Instant{}, false
	}
	return parseLocal(local)
}

// cutUTC returns a time without its offset, and whether that is zero.
func cutUTC(text []byte) (local []byte, isUTC bool) {
	if last := len(text) - 1; last >= 0 && text[last] == 'Z' {
		return text[:last], true
	}
	return bytes.CutSuffix(text, []byte("+00:00"))
}

// parseLocal is ParseInstant of a time without its offset.
func parseLocal(text []byte) (Instant, bool) {
	if text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' {
		return Instant{}, false
	}
	year, month, day := fourDigits(text[0:4]), twoDigits(text[5:7]), twoDigits(text[8:10])
	hour, minute, second := twoDigits(text[11:13]), twoDigits(text[14:16]), twoDigits(text[17:19])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return Instant{}, false
	}
	if uint(hour) > 23 || uint(minute) > 59 || uint(second) > 59 {
		return Instant{}, false
	}
	nanos, ok := fraction(text[19:])
	seconds := int64(daysSinceEpoch(year, month, day))*86400 + int64(hour*3600+minute*60+second)
	return Instant{Seconds: seconds, Nanos: nanos}, ok
}

// AppendText appends the instant as RFC 3339 with as many digits
// of fraction as it needs.
func (t Instant) AppendText(dst []byte) []byte {
	return t.Time().AppendFormat(dst, time.RFC3339Nano)
}

// String returns the instant as RFC 3339.
func (t Instant) String() string { return string(t.AppendText(nil)) }

// fraction reads ".d" to ".ddddddddd", or nothing.
func fraction(text []byte) (uint32, bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0] != '.' || len(text) < 2 || len(text) > 10 {
		return 0, false
	}
	nanos, unit := uint32(0), uint32(100_000_000)
	for _, c := range text[1:] {
		if c -= '0'; c > 9 {
			return 0, false
		}
		nanos += uint32(c) * unit
		unit /= 10
	}
	return nanos, true
}

// twoDigits is the number, or negative where a byte is no digit.
func twoDigits(text []byte) int {
	hi, lo := text[0]-'0', text[1]-'0'
	if hi > 9 || lo > 9 {
		return -1
	}
	return int(hi)*10 + int(lo)
}

// fourDigits is the number, or negative where a byte is no digit.
func fourDigits(text []byte) int {
	if word := binary.LittleEndian.Uint32(text); !fourAreDigits(word) {
		return -1
	}
	return twoDigits(text[:2])*100 + twoDigits(text[2:4])
}

func fourAreDigits(word uint32) bool {
	return word&0xf0f0f0f0 == 0x30303030 && (word+0x06060606)&0xf0f0f0f0 == 0x30303030
}

func daysIn(year, month int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return int([...]uint8{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1])
}

// daysSinceEpoch counts days in the proleptic Gregorian calendar: Howard Hinnant,
// "chrono-compatible low-level date algorithms", days_from_civil.
func daysSinceEpoch(year, month, day int) int {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	yearOfEra := year - era*400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146097 + dayOfEra - 719468
}
