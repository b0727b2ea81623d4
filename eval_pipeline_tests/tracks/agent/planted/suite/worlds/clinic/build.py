"""Makes the clinic's database and its lists of prices."""

import random
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb

rng = random.Random(12)
CODES = {"A1": 4000, "A2": 7250, "B1": 12000, "L1": 2150, "X1": 9990, "X2": 18050}
Path("prices").mkdir()
Path("prices/list_2024.csv").write_text(
    "code,price\n" + "".join(f"{c},{p * 0.95 / 100:.2f}\n" for c, p in CODES.items())
)
Path("prices/list_2025.csv").write_text("code;price\n" + "".join(f"{c};{p}\n" for c, p in CODES.items()))
DOCTORS = ["Adler", "Bauer", "Costa", "Duarte", "Engel", "Fiala", "Gomez", "Haas"]
DEPARTMENTS = ["Surgery", "Radiology", "Radiology", "Surgery", "Paediatrics", "Paediatrics", "Radiology", "Surgery"]
db = duckdb.connect("clinic.duckdb")
db.execute("CREATE TABLE doctors (doctor_id INTEGER, name VARCHAR, department VARCHAR)")
db.execute("CREATE TABLE doctors_old (doctor_id INTEGER, name VARCHAR, department VARCHAR)")
db.execute("CREATE TABLE patients (patient_id INTEGER, name VARCHAR, born DATE, insurer VARCHAR)")
db.execute(
    "CREATE TABLE appointments (appointment_id INTEGER, version INTEGER, patient_id INTEGER, doctor_id INTEGER, "
    "starts TIMESTAMP, minutes INTEGER, code VARCHAR, status VARCHAR)"
)
db.execute("CREATE TABLE reminders (patient_id INTEGER, day DATE)")
for number, (name, department) in enumerate(zip(DOCTORS, DEPARTMENTS, strict=True), 1):
    db.execute("INSERT INTO doctors VALUES (?, ?, ?)", [number, name, department])
    db.execute("INSERT INTO doctors_old VALUES (?, ?, ?)", [number, name, DEPARTMENTS[(number + 2) % 8]])
for number in range(1, 81):
    born = date(1940, 1, 1) + timedelta(days=rng.randrange(28000))
    db.execute(
        "INSERT INTO patients VALUES (?, ?, ?, ?)",
        [number, f"Patient {number:03}", born, rng.choice(["AOK", "TK", "TK", "PRIV"])],
    )
rows = []
for number in range(1, 701):
    starts = datetime(2024, 9, 2, 5, 15) + timedelta(
        days=rng.randrange(330), minutes=15 * rng.randrange(48), hours=rng.choice([0] * 9 + [7])
    )
    patient, doctor = rng.randrange(1, 81), rng.choice([1, 2, 2, 3, 4, 5, 6, 7, 8])
    minutes, code = rng.choice([15, 20, 30, 45]), rng.choice(list(CODES))
    one = [number, 1, patient, doctor, starts, minutes, code, rng.choice(["kept"] * 6 + ["missed", "cancelled"])]
    rows.append(one)
    if rng.random() < 0.2:
        moved = starts + timedelta(days=rng.randrange(1, 20))
        rows.append([number, 2, patient, doctor, moved, minutes, code, rng.choice(["kept", "missed", "cancelled"])])
db.executemany("INSERT INTO appointments VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
db.close()
