"""`ssl.principal.mapping.rules`: the tables of Kafka's own SslPrincipalMapperTest, and more."""

import pytest
from pydantic import ValidationError

from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.principal_rules import read_principal_rules, user_of

DOCUMENTED = ", ".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    ]
)


def user(name: str, rules: str) -> str | None:
    return user_of(name, read_principal_rules(rules))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_rules_of_kafka_s_documentation(name: str, wanted: str) -> None:
    assert user(name, DOCUMENTED) == wanted


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULT",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
        "RULE:^cn=(.?),ou=(.?),dc=(.?),dc=(.?)$/$1@$2/U",
        "RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/",
        "RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/",
    ],
)
def test_rules_that_kafka_accepts(rules: str) -> None:
    assert read_principal_rules(rules)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
    ],
)
def test_rules_that_kafka_refuses(rules: str) -> None:
    with pytest.raises(ValueError, match="is not a rule: write DEFAULT or RULE:"):
        read_principal_rules(rules)


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ("", []),
        ("DEFAULT", ["DEFAULT"]),
        ("RULE://", ["|"]),
        ("RULE:/.*/", ["|.*"]),
        ("RULE:/.*/L", ["|.*|L"]),
        ("  RULE:// ,  DEFAULT  ", ["|", "DEFAULT"]),
        ("  RULE:   /     / ,  DEFAULT  ", ["   |     ", "DEFAULT"]),
        ("  RULE:  /     /U   ,DEFAULT  ", ["  |     |U", "DEFAULT"]),
        (
            "  RULE:([A-Z]*)/$1/U   ,RULE:([a-z]+)/$1/,   DEFAULT  ",
            ["([A-Z]*)|$1|U", "([a-z]+)|$1", "DEFAULT"],
        ),
        (",   , , ,      , , ,   ", []),
        (",,RULE://,,,DEFAULT,,", ["|", "DEFAULT"]),
        (",  , RULE: /   /    ,,,   DEFAULT, ,   ", [" |   ", "DEFAULT"]),
        (r"RULE:\/\\\(\)\n\t/\/\//", [r"\/\\\(\)\n\t|\/\/"]),
        (
            r"RULE:,RULE:,/,RULE:,\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,RULE:, DEFAULT, "
            "/DEFAULT/,DEFAULT",
            [
                r",RULE:,|,RULE:,\/|U",
                ",|RULE:,",
                ",RULE:,|L,RULE:,|L",
                ", DEFAULT, |DEFAULT",
                "DEFAULT",
            ],
        ),
    ],
)
def test_rules_are_split_as_kafka_splits_them(rules: str, wanted: list[str]) -> None:
    def shown(pattern: str, replacement: str, case: str) -> str:
        return "|".join([pattern, replacement, *([case] if case else [])])

    assert [
        "DEFAULT"
        if rule.pattern is None
        else shown(rule.pattern.pattern, rule.replacement, rule.case)
        for rule in read_principal_rules(rules)
    ] == wanted


@pytest.mark.parametrize(
    ("name", "rules", "wanted"),
    [
        (r"CN=Tkac\, Adam,OU=ITZ", r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT", r"Tkac\, Adam"),
        ("CN=a,OU=b", "RULE:^CN=(.*),OU=(.*)$/$1-$3-$12-$0/", "a-$3-a2-CN=a,OU=b"),
        ("CN=a", r"RULE:^CN=(.*)$/\$1\/$1/", "$1/a"),
        ("CN=a", "RULE:^CN=(.)(x)?$/$1$2!/", "a!"),
        ("CN=a", "RULE:^OU=(.*)$/$1/", None),
        ("CN=a,OU=b", "RULE:CN=a/x/", None),
    ],
)
def test_what_a_rule_makes(name: str, rules: str, wanted: str | None) -> None:
    assert user(name, rules) == wanted


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("RULE:(/x/", "not a regular expression of Python"),
        ("RULE:a/$x/", r"write \$1 for the first group"),
        ("DEFAUL", "'DEFAUL' is not a rule"),
    ],
)
def test_a_wrong_rule_is_named_at_start(rules: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        BrokerSettings(bucket_url="memory://x", ssl_principal_mapping_rules=rules)
