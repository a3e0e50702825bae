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

// writeOrganization shows the organization; name is what was wanted where fault says why it can't be.
func (p Pages) writeOrganization(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
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

func (p Pages) renameOrganization(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	organization, name := pages.CallerOf(r).Organization, r.PostForm.Get("name")
	_, err := p.service.RenameOrganization(r.Context(), p.RequestOf(r), organization, name)
	if pages.IsInvalid(err) {
		return p.writeOrganization(w, r, http.StatusUnprocessableEntity, name, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "organization", organization)
	}
	ui.SetFlash(w, "organization-renamed")
	http.Redirect(w, r, pages.OrganizationPath, http.StatusSeeOther)
	return nil
}
