package ledger

import (
	"reflect"
	"testing"
	"time"
)

// notStanding are the fields of an organization that charges change, that
// the decision has itself, or that are its place in the chain.
var notStanding = map[string]bool{
	".Pool": true, ".Decisions": true, ".DecidedAt": true, ".Head": true, ".Statements": true, ".Stated": true,
}

// Every other field of an organization is in its standing: a new one has
// to be added.
func TestStandingHasAllThatIsDecided(t *testing.T) {
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	o := Organization{
		ID: "acme", Anchoring: Anchoring{AnchorDay: 1, Anchors: []Anchor{{From: at, Day: 2}}}, Plans: Plans{{From: at, Tier: Indie}},
		Thresholds: Thresholds{80}, Usual: Thresholds{50}, Opened: at, Clock: at, ClosedThrough: at,
	}
	budgets := []Budget{{Spender: Spender{Project: "shop"}, Bytes: 1, Since: 1}}
	was := StandingOf(o, budgets)
	changeEach(reflect.ValueOf(&o).Elem(), "", func(path string) {
		if is := StandingOf(o, budgets); (is == was) != notStanding[path] {
			t.Errorf("with another %s the standing is %x, was %x", path, is, was)
		}
	})
	for name, change := range map[string]func(b *Budget){
		"spender": func(b *Budget) { b.Project = "store" }, "bytes": func(b *Budget) { b.Bytes++ }, "since": func(b *Budget) { b.Since++ },
	} {
		changed := budgets[0]
		change(&changed)
		if StandingOf(o, []Budget{changed}) == was {
			t.Errorf("with another %s of a budget the standing is the same", name)
		}
	}
	if StandingOf(o, nil) == was {
		t.Error("without its budget the standing is the same")
	}
}

// changeEach changes one field at a time, also of structs and the first of
// slices, calls check and changes it back.
func changeEach(v reflect.Value, path string, check func(path string)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		if at, is := v.Interface().(time.Time); is {
			v.Set(reflect.ValueOf(at.Add(time.Hour)))
			break
		}
		for i := range v.NumField() {
			changeEach(v.Field(i), path+"."+v.Type().Field(i).Name, check)
		}
		return
	case reflect.Slice:
		changeEach(v.Index(0), path, check)
		v.Set(reflect.Zero(v.Type()))
	case reflect.Array:
		v.Index(0).SetUint(v.Index(0).Uint() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
	check(path)
	v.Set(was)
}
