package console

import (
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
)

type organizationPage struct {
	settings
	MayRename bool
	Name      ui.Field
}

func (c *console) showOrganization(w http.ResponseWriter, r *http.Request) error {
	return c.writeOrganization(w, r, http.StatusOK, "", nil)
}

// writeOrganization shows the organization; name is what was wanted where fault says why it can't be.
func (c *console) writeOrganization(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	shown, err := c.settings(r)
	if err != nil {
		return err
	}
	if fault == nil {
		name = shown.Organization.Name
	}
	c.pages.Write(w, r, status, "organization", ui.View{
		Title: "Organization", Tabs: tabs(r, organizationPath),
		Flash: ui.TakeFlash(w, r, map[string]string{"organization-renamed": "The organization has its new name."}),
		Data: organizationPage{shown, shown.Role.May(tenants.OrganizationWrite), ui.Field{
			Name: "name", Label: "Name", Value: name, Fault: faultOf(fault, "name"), MaxLength: 200, Required: true, Autocomplete: "organization",
		}},
	})
	return nil
}

func (c *console) renameOrganization(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	organization, name := callerOf(r).Organization, r.PostForm.Get("name")
	_, err := c.Registrar.RenameOrganization(r.Context(), c.requestOf(r), organization, name)
	if isInvalid(err) {
		return c.writeOrganization(w, r, http.StatusUnprocessableEntity, name, err)
	}
	if err != nil {
		return problemOf(err, "organization", organization)
	}
	ui.SetFlash(w, "organization-renamed")
	http.Redirect(w, r, organizationPath, http.StatusSeeOther)
	return nil
}
