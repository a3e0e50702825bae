package groups

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

// The audit shows a change of any part of an alert.
func TestEachPartOfAnAlertIsReported(t *testing.T) {
	whole := func() grouping.AlertRule {
		return grouping.AlertRule{
			Name: "Pay", Triggers: grouping.Triggers(), NewFrom: 2, Count: 100, Per: time.Hour, Users: 5, UsersPer: time.Hour,
			Severities: grouping.SeverityError, Environments: []string{"prod"}, Words: []string{"cart"}, Gap: time.Minute, Roles: []string{"admin"},
			Hours:   grouping.Hours{Days: []time.Weekday{time.Monday}, From: 480, To: 1080, Zone: "Europe/Berlin"},
			Members: []string{"mem_1"}, Webhooks: []string{"whk_1"}, MutedUntil: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		}
	}
	said := alertFields(whole())
	want := Fields{
		"name": "Pay", "when": "new from 2, regressed, unignored, spiking, many 100 per hour, users 5 per hour", "levels": "error", "environments": "prod",
		"words": "cart", "mail_to": "admin, mem_1", "webhooks": "whk_1", "at_most_every": "1m0s", "muted_until": "2026-11-21T12:00:00Z",
		"hours": "08:00 to 18:00 Europe/Berlin, Monday",
	}
	if !maps.Equal(said, want) {
		t.Errorf("the audit shows %q, want %q", said, want)
	}
	rule := whole()
	eachPart(reflect.ValueOf(&rule).Elem(), "", func(name string, part reflect.Value) {
		change(t, name, part)
		if maps.Equal(alertFields(rule), said) {
			t.Errorf("a change of %s is not shown", name)
		}
		rule = whole()
	})
}

func eachPart(of reflect.Value, name string, visit func(name string, part reflect.Value)) {
	if of.Kind() != reflect.Struct || of.Type() == reflect.TypeFor[time.Time]() {
		visit(name, of)
		return
	}
	for field, part := range of.Fields() {
		eachPart(part, name+"."+field.Name, visit)
	}
}

func change(t *testing.T, name string, part reflect.Value) {
	t.Helper()
	switch is := part.Interface().(type) {
	case string:
		part.SetString(is + " and more")
	case int:
		part.SetInt(int64(is) + 1)
	case int64:
		part.SetInt(is + 1)
	case time.Duration:
		part.SetInt(int64(24 * time.Hour))
	case grouping.Severity:
		part.Set(reflect.ValueOf(is | grouping.SeverityFatal))
	case time.Time:
		part.Set(reflect.ValueOf(is.Add(time.Hour)))
	default:
		if part.Kind() != reflect.Slice {
			t.Fatalf("%s is a %s: have it changed here", name, part.Type())
		}
		part.SetZero()
	}
}
