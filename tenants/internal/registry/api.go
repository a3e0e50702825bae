package registry

import (
	"slices"

	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants/internal/api"
)

// An API serves organizations, projects, service tokens and
// security policies to service tokens.
type API struct {
	*api.Kit
	Services
}

// NewAPI returns the API of some services.
func NewAPI(kit *api.Kit, services Services) API { return API{kit, services} }

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return slices.Concat(organizationOperations(a), projectOperations(a), deletionOperations(a), securityPolicyOperations(a), serviceTokenOperations(a))
}
