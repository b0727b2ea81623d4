"""Makes the files of the league."""

import csv
import random
from datetime import date, timedelta
from pathlib import Path

rng = random.Random(34)
TEAMS = ["Anker", "Borussia", "Concordia", "Dynamo", "Eintracht", "Fortuna", "Gloria", "Hansa"]
TOWNS = ["Emden", "Leer", "Emden", "Aurich", "Norden", "Leer", "Aurich", "Wittmund"]


def write(name: str, head: str, rows: list) -> None:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([head.split(","), *rows])


write("teams.csv", "team,town,founded", [[t, TOWNS[n], 1899 + 7 * n] for n, t in enumerate(TEAMS)])
write("deductions.csv", "team,points,reason", [["Dynamo", 4, "fees"], ["Gloria", 2, "player not allowed"]])
players = [
    [f"{t[:3].upper()}{n:02}", t, ("keeper", "defender", "defender", "midfield", "midfield", "forward")[n % 6]]
    for t in TEAMS
    for n in range(12)
]
before = [[p, TEAMS[rng.randrange(8)] if rng.random() < 0.2 else t, position] for p, t, position in players]
write("players.csv", "player,team,position", players)
write("players_winter.csv", "player,team,position", before)
matches, fixtures, goals = [], [], []
pairs = [(h, a) for h in TEAMS for a in TEAMS if h != a]
rng.shuffle(pairs)
for number, (home, away) in enumerate(pairs, 1):
    day = date(2025, 2, 1) + timedelta(days=5 * number + rng.randrange(3))
    status = rng.choice(["played"] * 9 + ["abandoned", "awarded"])
    count = {home: 0, away: 0}
    for minute in sorted(rng.randrange(1, 91) for _ in range(rng.choice([1, 2, 3, 3, 4, 5]))):
        scorer = rng.choice([p for p in players if p[1] in (home, away) and p[2] != "keeper"])
        kind = rng.choice(["goal"] * 8 + ["penalty", "own"])
        if status != "awarded":
            goals.append([number, minute, scorer[0], kind])
            count[({home, away} - {scorer[1]}).pop() if kind == "own" else scorer[1]] += 1
    award = rng.choice([home, away]) if status == "awarded" else ""
    matches.append([number, day, home, away, count[home], count[away], status, award])
    swapped = rng.random() < 0.15
    planned = day - timedelta(days=rng.choice([0, 0, 3, 21]))
    fixtures.append([number, planned, away if swapped else home, home if swapped else away])
write("matches.csv", "match,date,home,away,home_goals,away_goals,status,awarded_to", matches)
write("fixtures.csv", "match,date,home,away", fixtures)
write("goals.csv", "match,minute,player,kind", goals)
