"""The addresses of clients, in one notation: ACLs and quotas name them. Pure."""

from ipaddress import IPv6Address, ip_address


def canonical_host(text: str) -> str:
    """An address in one notation: IPv6 addresses have many. Other text stays as it is."""
    try:
        address = ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address if mapped is None else mapped)
