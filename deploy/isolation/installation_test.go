package isolation

import (
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// shared are the tests that share one installation: each has its own tenants.
var shared = []struct {
	name string
	test func(*testing.T, *world)
}{
	{"EveryRouteHasAPolicy", testEveryRouteHasAPolicy},
	{"Matrix", testMatrix},
	{"ForeignLooksUnknown", testForeignLooksUnknown},
	{"EveryAuthenticatedRouteIsLimited", testEveryAuthenticatedRouteIsLimited},
	{"Forgery", testForgery},
	{"SessionFixation", testSessionFixation},
	{"HeadersOfPages", testHeadersOfPages},
	{"OpenRedirects", testOpenRedirects},
	{"MassAssignment", testMassAssignment},
	{"NobodyIsEnumerated", testNobodyIsEnumerated},
	{"MethodsAndSizes", testMethodsAndSizes},
}

func TestInstallation(t *testing.T) {
	w := newWorldOn(t, postgrestest.URL(t), func(set *allinone.Modules) { set.Tenants.Bounds.ChangesPerMinute = 10_000 }) // more than they make
	for _, s := range shared {
		t.Run(s.name, func(t *testing.T) {
			own := *w
			own.checked = openapitest.Handler(t, w.gateway) // what it gets and is not described fails this test
			s.test(t, &own)
		})
	}
}
