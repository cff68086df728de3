package executortest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (f *ARM) getNIC(id string) (reply, *refusal) {
	if r := f.may("Microsoft.Network/networkInterfaces/read", id); r != nil {
		return nil, r
	}
	n, ok := f.seen()[strings.ToLower(id)]
	if !ok {
		return nil, noNIC(id)
	}
	return &armAnswer{status: http.StatusOK, headers: map[string]string{"ETag": n.shown["etag"].(string)}, body: n.shown}, nil
}

func noNIC(id string) *refusal {
	name := id[strings.LastIndex(id, "/")+1:]
	return refuse(http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.Network/networkInterfaces/%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix", name, armGroup)
}

// listNICs lists those of a resource group.
func (f *ARM) listNICs(under string) (reply, *refusal) {
	if r := f.may("Microsoft.Network/networkInterfaces/read", under); r != nil {
		return nil, r
	}
	list := []document{}
	s := f.seen()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if strings.HasPrefix(key, strings.ToLower(under)+"/") {
			list = append(list, s[key].shown)
		}
	}
	return &armAnswer{status: http.StatusOK, body: document{"value": list}}, nil
}

// getSubnet shows whose IP configurations are in the subnet, and, expanded, what they are.
func (f *ARM) getSubnet(id, expand string) (reply, *refusal) {
	if r := f.may("Microsoft.Network/virtualNetworks/subnets/read", id); r != nil {
		return nil, r
	}
	if !strings.EqualFold(id, armSubnet) {
		return nil, refuse(http.StatusNotFound, "NotFound", "Resource %s not found.", id)
	}
	configs := []any{}
	s := f.seen()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		for _, c := range configurations(s[key].shown) {
			if expand != "ipConfigurations" {
				c = document{"id": c.(document)["id"]}
			}
			configs = append(configs, c)
		}
	}
	return &armAnswer{status: http.StatusOK, body: document{
		"id": armSubnet, "name": "mobile", "etag": `W/"subnet"`, "type": "Microsoft.Network/virtualNetworks/subnets",
		"properties": document{"provisioningState": "Succeeded", "addressPrefixes": []string{"10.0.0.0/24", "2001:db8::/64"}, "ipConfigurations": configs},
	}}, nil
}

func (f *ARM) getOperation(number string) (reply, *refusal) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(f.operations) {
		return nil, refuse(http.StatusNotFound, "OperationNotFound", "The operation %s was not found.", number)
	}
	switch op := f.operations[n]; {
	case !op.done:
		return &armAnswer{status: http.StatusOK, headers: map[string]string{"Retry-After": armRetryAfter}, body: document{"status": "InProgress"}}, nil
	case op.err != nil:
		return &armAnswer{status: http.StatusOK, body: document{"status": "Failed", "error": document{"code": op.err.Code, "message": op.err.Message, "details": []any{}}}}, nil
	}
	return &armAnswer{status: http.StatusOK, body: document{"status": "Succeeded"}}, nil
}

// putNIC accepts a NIC, or says why not.
func (f *ARM) putNIC(c *Call, id string, body document) (reply, *refusal) {
	for _, action := range []string{"Microsoft.Network/networkInterfaces/write", "Microsoft.Network/virtualNetworks/subnets/join/action"} {
		if r := f.may(action, id); r != nil {
			return nil, r
		}
	}
	n, ok := f.history.current()[strings.ToLower(id)]
	if !ok {
		return nil, noNIC(id) // the fake creates none
	}
	if c.IfMatch != "" && c.IfMatch != "*" && c.IfMatch != n.shown["etag"] {
		return nil, refuse(http.StatusPreconditionFailed, "PreconditionFailed", "Precondition failed. Precondition IfMatch for resource %s failed: the etag is %s, not %s.", id, n.shown["etag"], c.IfMatch)
	}
	for i, op := range f.operations {
		if !op.done && strings.EqualFold(op.nic, id) {
			return nil, refuse(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: %s.", f.operationURL(i))
		}
	}
	if r := f.invalid(n, body); r != nil {
		return nil, r
	}
	for _, name := range []string{"id", "name", "type"} { // whatever is sent
		body[name] = n.shown[name]
	}
	properties(body)["macAddress"] = properties(n.shown)["macAddress"]
	accepted := f.accept(c.N, n.id, body)
	c.Accepted = true
	return &armAnswer{status: http.StatusOK, headers: map[string]string{
		"Azure-AsyncOperation": f.operationURL(len(f.operations) - 1), "Azure-AsyncNotification": "Enabled", "Retry-After": armRetryAfter,
	}, body: accepted}, nil
}

// invalid says what is wrong with a NIC that is put.
func (f *ARM) invalid(n *armNIC, body document) *refusal {
	if body == nil || body["location"] == nil {
		return refuse(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	}
	primary, names := 0, map[string]bool{}
	for _, c := range configurations(body) {
		name, _ := c.(document)["name"].(string)
		p := properties(c.(document))
		if names[name] {
			return refuse(http.StatusBadRequest, "DuplicateResourceName", "Resource %s has two child resources with the same name (%s).", n.id, name)
		}
		names[name] = true
		if p["primary"] == true {
			primary++
		}
		if subnet, _ := p["subnet"].(document); subnet == nil || !strings.EqualFold(fmt.Sprint(subnet["id"]), armSubnet) {
			return refuse(http.StatusBadRequest, "SubnetIsRequired", "Subnet reference is required for ipconfiguration %s/ipConfigurations/%s.", n.id, name)
		}
	}
	for _, c := range configurations(n.shown) {
		if name := c.(document)["name"].(string); properties(c.(document))["primary"] == true && (primary != 1 || !names[name]) {
			return refuse(http.StatusBadRequest, "IpConfigDeleteNotSupported", "IP Configuration %s cannot be deleted. Deletion and renaming of primary IP Configuration is not supported", name)
		}
	}
	if limit, ok := f.limits[strings.ToLower(n.id)]; ok && len(names) > limit {
		// The real code and words are not written down anywhere that we know of.
		return refuse(http.StatusBadRequest, "IpConfigurationLimitExceeded", "The number of IP configurations %d of network interface %s exceeds the maximum allowed value of %d.", len(names), n.id, limit)
	}
	return f.conflict(n, body)
}

// conflict says that another NIC has an address of one that is put, or has not let go of it yet.
func (f *ARM) conflict(n *armNIC, body document) *refusal {
	for _, c := range configurations(body) {
		for _, other := range f.history.current() {
			if other.id == n.id {
				continue
			}
			for _, has := range slices.Concat(configurations(other.shown), configurations(other.live)) {
				if a := addressOf(c); a.IsValid() && addressOf(has) == a {
					return refuse(http.StatusBadRequest, "PrivateIPAddressIsAllocated",
						"IP configuration %s/ipConfigurations/%s is using the private IP address %s which is already allocated to resource %s.", n.id, c.(document)["name"], a, has.(document)["id"])
				}
			}
		}
	}
	return nil
}
