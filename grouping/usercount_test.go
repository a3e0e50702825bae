package grouping_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

func usersRule(n int64, per time.Duration) grouping.AlertRule {
	rule := grouping.DefaultAlertRule()
	rule.Triggers, rule.Users, rule.UsersPer = []grouping.Trigger{grouping.OnUsers}, n, per
	return rule
}

// affected is an error that came so many seconds after monday to some users.
func affected(second int, users ...uint64) grouping.Arrival {
	return grouping.Arrival{At: monday.Add(time.Duration(second) * time.Second), Severity: grouping.SeverityError, N: int64(len(users)), Users: users}
}

// So many users within a time are told once, and again when they have been
// fewer, in whatever portions they come; how often one comes does not count.
func TestCrowds(t *testing.T) {
	rule := usersRule(3, time.Minute)
	arrived := []grouping.Arrival{
		affected(0, 1, 1, 1), affected(10, 2, 1), affected(20, 1), affected(31, 3), affected(40, 4), affected(55, 5),
		affected(200, 1), affected(210, 2), affected(220), affected(230, 1, 3), affected(400, 7, 8, 9),
	}
	want := []int{31, 230, 400}
	for portion := 1; portion <= len(arrived); portion++ {
		var burst grouping.Burst
		var told []int
		for some := range slices.Chunk(arrived, portion) {
			for _, at := range rule.Reach(time.Time{}, []grouping.Seen{{Environment: "prod", Arrived: some}}, &burst).Users {
				told = append(told, int(at.Sub(monday).Seconds()))
			}
		}
		if !slices.Equal(told, want) {
			t.Errorf("by %d: told after %v seconds, want %v", portion, told, want)
		}
	}
}

// Only users of the rule's environments and levels count.
func TestCrowdsOfEnvironments(t *testing.T) {
	rule := usersRule(2, time.Hour)
	rule.Environments = []string{"prod"}
	came := []grouping.Seen{{Environment: "staging", Arrived: []grouping.Arrival{affected(0, 1, 2, 3)}}, {Environment: "prod", Arrived: []grouping.Arrival{affected(1, 1)}}}
	var burst grouping.Burst
	if reached := rule.Reach(time.Time{}, came, &burst); reached.Any() {
		t.Errorf("told of %+v", reached)
	}
	came = []grouping.Seen{{Environment: "prod", Arrived: []grouping.Arrival{affected(2, 2)}}}
	told := rule.Notices(time.Time{}, &grouping.Counted{Group: "grp_1", Status: grouping.Unresolved, Count: 9, Seen: came}, rule.Reach(time.Time{}, came, &burst))
	if len(told) != 1 || told[0].Trigger != grouping.OnUsers || told[0].Cause != "It affected 2 users within an hour." {
		t.Errorf("told: %+v", told)
	}
}

// Up to 512 users are exact; more are told within the error that is documented,
// by 3 KB. A number that comes and goes is followed.
func TestCrowdsAreExactOrNearlySo(t *testing.T) {
	for _, n := range []int{1, 100, 512, 1000, 5000, 50_000} {
		portion := 1 + n/1000
		var square float64
		const rounds = 12
		for seed := range uint64(rounds) {
			random, told := rand.New(rand.NewPCG(seed, uint64(n))), 0 //nolint:gosec // a test that can be repeated
			rule := usersRule(int64(n), time.Hour)
			var burst grouping.Burst
			for came := portion; came <= 2*n && told == 0; came += portion {
				users := make([]uint64, portion)
				for i := range users {
					users[i] = random.Uint64()
				}
				if rule.Reach(time.Time{}, []grouping.Seen{{Arrived: []grouping.Arrival{affected(came*900/n, users...)}}}, &burst).Any() {
					told = came
				}
				if len(burst.UserCount.Users) > 6*grouping.MaxCrowd {
					t.Fatalf("%d bytes", len(burst.UserCount.Users))
				}
			}
			if n <= grouping.MaxCrowd && told != n {
				t.Errorf("%d users are told after %d", n, told)
			}
			square += math.Pow(float64(told)/float64(n)-1, 2)
		}
		if off := math.Sqrt(square / rounds); off > 0.09 { // 6.3 % and chance
			t.Errorf("%d users: off by %.3f", n, off)
		}
	}
}

// Once a flood of users is over, few are exact again.
func TestCrowdsShrink(t *testing.T) {
	rule := usersRule(50, time.Hour)
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a test that can be repeated
	var burst grouping.Burst
	told := []string{}
	come := func(minute, n int) {
		for range n {
			if rule.Reach(time.Time{}, []grouping.Seen{{Arrived: []grouping.Arrival{affected(60*minute, random.Uint64())}}}, &burst).Any() {
				told = append(told, fmt.Sprint(minute))
			}
		}
	}
	come(0, 5000)
	for minute := 6; minute < 240; minute += 6 {
		come(minute, 1) // ten within each hour
	}
	come(240, 39)
	if len(told) != 1 {
		t.Errorf("told at %v", told)
	}
	if come(240, 5); len(told) != 2 {
		t.Errorf("told at %v, by fewer than they are", told)
	}
}

// An alert on what was resolved and comes again tells of what was archived, too.
func TestAlertOfArchived(t *testing.T) {
	rule := grouping.AlertRule{Triggers: []grouping.Trigger{grouping.OnRegressed}, NewFrom: 1}
	decided := grouping.Decision{Kind: grouping.WasReopened, At: at(day + 5), Reason: "It happened after it was archived."}
	byHand := grouping.Decision{Kind: grouping.WasReopened, At: at(day + 5)}
	for _, d := range []grouping.Decision{decided, byHand} {
		told := rule.Notices(time.Time{}, &grouping.Counted{Group: "grp_1", Status: grouping.Unresolved, Count: 9, Decided: []grouping.Decision{d}}, grouping.Reached{})
		if (len(told) == 1) != (d.Reason != "") {
			t.Errorf("%+v is told by %+v", d, told)
		}
	}
}
