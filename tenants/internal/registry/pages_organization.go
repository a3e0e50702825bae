package registry

import (
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

type organizationPage struct {
	pages.Settings
	MayRename bool
	Name      ui.Field
}

func (p Pages) showOrganization(w http.ResponseWriter, r *http.Request) error {
	return p.writeOrganization(w, r, http.StatusOK, "", nil)
}

// writeOrganization shows the organization; name is
// the wanted one if fault is why it was refused.
func (p Pages) writeOrganization(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	shown.Organization = p.Organizations.subscribed(shown.Organization)
	if fault == nil {
		name = shown.Organization.Name
	}
	p.Write(w, r, status, "organization", ui.View{
		Title: "Organization", Tabs: pages.Tabs(r, pages.OrganizationPath),
		Flash: ui.TakeFlash(w, r, map[string]string{"organization-renamed": "The organization has its new name."}),
		Data: organizationPage{shown, shown.Role.May(tenants.OrganizationWrite), ui.Field{
			Name: "name", Label: "Name", Value: name, Fault: pages.FaultOf(fault, "name"), MaxLength: 200, Required: true, Autocomplete: "organization",
		}},
	})
	return nil
}

func (p Pages) renameOrganization() pages.Handler {
	return pages.TextForm[tenants.Organization]{
		What: "organization", Field: "name", ID: ownOrganization, Change: p.Organizations.Rename, Again: p.writeOrganization,
		Flash: "organization-renamed", Back: pages.OrganizationPath,
	}.Submit(p.Kit)
}

func ownOrganization(r *http.Request) (string, error) { return pages.CallerOf(r).Organization, nil }
